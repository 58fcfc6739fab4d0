/** `rolldeck run …` and `rolldeck rollout …`: the SDK's verbs. */
import { readFileSync } from "node:fs";
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";
import { RunActions, type RunSummary } from "@rolldeck/contracts/api/runs";
import { presets } from "@rolldeck/contracts/presets";
import type { Command } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { evaluationTable } from "./evaluation-table.ts";
import { plain, print, table } from "./output.ts";
import { overfitConfig } from "./overfit-config.ts";
import { watchRun } from "./watch-run.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addRunCommands(program: Command): void {
  const run = program.command("run").description("Launch, list, watch and steer runs");
  withConnection(run.command("launch"))
    .description("Launch a run from a YAML or JSON file, or from a preset")
    .option("-f, --file <file>", "config file; - for standard input")
    .option("--preset <name>", `one of ${Object.keys(presets).join(", ")}`)
    .option("--overfit [steps]", "train the first step's instances again and again, and say whether their reward rises")
    .option("--watch", "print its progress until it ends")
    .action(launch);
  withConnection(run.command("list"))
    .description("List runs, newest first")
    .option("-q, --query <query>", "words and filters such as status:running", "")
    .option("-n, --limit <n>", "how many", "20")
    .action(list);
  withConnection(run.command("watch <run>")).description("Print a run's progress until it ends").action(watch);
  withConnection(run.command("evaluation <run>"))
    .description("Print a run's evaluations with their 95 % intervals")
    .option("--baseline <run>", "compare with this run's newest evaluation")
    .action(showEvaluation);
  withConnection(run.command("trainer <run>"))
    .description("Print where the trainer is that was launched with a run, and the end of its log")
    .action(showTrainer);
  const actions = {
    stop: "Stop a run",
    pause: "Pause a run: stages end at their next turn",
    drain: "Drain a run: what is begun comes to its end, then the run pauses",
    resume: "Resume a run",
  };
  for (const action of RunActions) {
    withConnection(run.command(`${action} <run>`))
      .description(actions[action])
      .action(async (runId: string, flags: Flags) => {
        const reply = await connect(flags).rolldeck.actOnRun(runId, action);
        print(flags.json === true, reply, () => `${reply.runId} ${reply.status}`);
      });
  }
  const rollout = program.command("rollout").description("Read rollouts");
  withConnection(rollout.command("show <rollout>")).description("Print a rollout turn by turn").action(showRollout);
}

function readConfig(flags: { file?: string; preset?: string }): unknown {
  if (flags.preset !== undefined) {
    const preset = Object.entries(presets).find(([name]) => name === flags.preset)?.[1];
    if (preset === undefined)
      throw new CommandFailure(`no preset ${flags.preset}; there are ${Object.keys(presets).join(", ")}`);
    return preset.config;
  }
  if (flags.file === undefined)
    throw new CommandFailure("name a config with -f run.yaml, or a preset with --preset quickstart");
  try {
    return readFileSync(flags.file === "-" ? 0 : flags.file, "utf8");
  } catch (cause) {
    throw new CommandFailure(`${flags.file} can't be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}

async function showTrainer(runId: string, flags: Flags): Promise<void> {
  const launched = await connect(flags).rolldeck.readLaunchedTrainer(runId);
  print(flags.json === true, launched, () => {
    const [newest] = launched.attempts;
    if (newest === undefined) return "no trainer was launched with this run";
    const rows = launched.attempts.map(({ attempt, trainer, state, submissionId, message }) => [
      ...[attempt, trainer, state, submissionId],
      plain(message ?? ""),
    ]);
    const log = newest.logTail.split("\n").map(plain).join("\n");
    return `${table(["attempt", "trainer", "state", "job", "message"], rows)}\n\n${log}`;
  });
}

interface LaunchFlags extends Flags {
  readonly file?: string;
  readonly preset?: string;
  readonly watch?: boolean;
  readonly overfit?: string | true;
}

async function launch(flags: LaunchFlags): Promise<void> {
  const config = flags.overfit === undefined ? readConfig(flags) : overfitConfig(readConfig(flags), flags.overfit);
  const { rolldeck, url } = connect(flags);
  // What makes it impossible is the launch's own word.
  const { warnings } = await rolldeck.checkConfig(config);
  for (const { path, message, fix } of warnings)
    process.stderr.write(`○ ${path}: ${plain(message)}${fix === null ? "" : `. ${plain(fix)}`}\n`);
  const launched = await rolldeck.launchRun(config);
  print(flags.json === true, launched, () => `launched ${launched.runId}: ${url}/runs/${launched.runId}`);
  if (flags.watch) await watchRun(rolldeck, launched.runId, flags.json === true);
}

async function list(flags: Flags & { query: string; limit: string }): Promise<void> {
  const limit = Number(flags.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > 200) throw new CommandFailure("--limit is 1 to 200");
  const page = await connect(flags).rolldeck.listRuns({ query: flags.query, limit });
  const row = (item: RunSummary): (string | number | null)[] => [
    item.runId,
    plain(item.name),
    item.status,
    `${item.step}/${item.steps}`,
    item.reward,
    item.success,
    item.createdAt,
  ];
  print(flags.json === true, page, () =>
    page.items.length === 0
      ? "no runs; launch one with `npx rolldeck run launch --preset quickstart`"
      : table(["run", "name", "status", "step", "reward", "success", "created"], page.items.map(row)),
  );
}

async function watch(runId: string, flags: Flags): Promise<void> {
  await watchRun(connect(flags).rolldeck, runId, flags.json === true);
}

async function showEvaluation(runId: string, flags: Flags & { baseline?: string }): Promise<void> {
  const report = await connect(flags).rolldeck.readEvaluation({ runId, baseline: flags.baseline ?? null });
  print(flags.json === true, report, () => evaluationTable(report));
}

async function showRollout(rolloutId: string, flags: Flags): Promise<void> {
  const { rolldeck } = connect(flags);
  const rollout = await rolldeck.getRollout(rolloutId);
  const turns: TurnView[] = [];
  for (;;) {
    const page = await rolldeck.readTurns({ rolloutId, after: turns.at(-1)?.turn ?? -1, limit: 200 });
    turns.push(...page.turns);
    if (!page.more) break;
  }
  print(flags.json === true, { rollout, turns }, () =>
    [describeRollout(rollout), ...turns.map(describeTurn)].join("\n\n"),
  );
}

function describeRollout(rollout: RolloutDetail): string {
  const reward = rollout.reward === null ? "no reward" : `reward ${rollout.reward}`;
  return `${rollout.rolloutId}  ${rollout.taskSet} ${plain(rollout.instanceId)}  sample ${rollout.sample + 1}\n${rollout.outcome ?? rollout.state}, ${rollout.ending ?? rollout.stage}, ${reward}${rollout.reason === null ? "" : `\n${plain(rollout.reason)}`}`;
}

function describeTurn(turn: TurnView): string {
  const added = turn.added.map((part) => `  ${part.origin}: ${plain(part.preview.text)}`);
  const calls = turn.calls.map((call) => {
    const outcome =
      call.error === null ? (call.output?.text ?? "(no output yet)") : `${call.error.code}: ${call.error.message}`;
    return `  → ${call.name} ${plain(JSON.stringify(call.arguments))} = ${plain(outcome)}`;
  });
  const head = `turn ${turn.turn}  ${turn.promptTokens} prompt + ${turn.sampledTokens} sampled tokens, version ${turn.policyVersion}, ${turn.sampleMs.toFixed(0)} ms`;
  return [head, ...added, `  model: ${plain(turn.sampled.text)}`, ...calls].join("\n");
}
