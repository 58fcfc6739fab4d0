/** `rolldeck sandbox …`: a run's sandboxes, how long one stays, and a shell in one. */
import { isThere, type SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import { type Command, InvalidArgumentError } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withServer } from "./connection.ts";
import { plain, print, table } from "./output.ts";

/** As many as the server lists at once. */
const mostListed = 500;

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addRunSandboxCommands(program: Command): void {
  const sandbox = program.command("sandbox").description("Look into the sandboxes of runs");
  withServer(sandbox.command("list <run>"))
    .description("List a run's sandboxes that are there")
    .option("--all", "closed and lost ones, too")
    .option("--json", "print JSON")
    .action(list);
  withServer(sandbox.command("keep <sandbox>"))
    .description("Keep a sandbox after its rollout is done with it")
    .option("-m, --minutes <n>", "from now on", minutes, 30)
    .option("--json", "print JSON")
    .action(async (sandboxId: string, flags: Flags & { minutes: number }) => {
      const kept = await connect(flags).rolldeck.keepSandbox({ sandboxId, minutes: flags.minutes });
      print(flags.json === true, kept, () => `${kept.sandboxId} stays until ${kept.keepUntil ?? "its rollout ends"}`);
    });
  withServer(sandbox.command("close <sandbox>"))
    .description("Let a kept sandbox go")
    .option("--json", "print JSON")
    .action(async (sandboxId: string, flags: Flags) => {
      const closed = await connect(flags).rolldeck.closeSandbox(sandboxId);
      print(flags.json === true, closed, () => `${closed.sandboxId} is closed by the next sweep`);
    });
  withServer(sandbox.command("shell <run> [sandbox]"))
    .description("Open a shell in a live or kept sandbox (default: the run's newest); Ctrl-] leaves it")
    .option("--yes", "in one that is in use, too, without being asked")
    .action(shell);
}

function minutes(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 1440) throw new InvalidArgumentError("1 to 1440 minutes");
  return value;
}

async function list(runId: string, flags: Flags & { all?: boolean }): Promise<void> {
  const which = flags.all ? "all" : "live";
  const page = await connect(flags).rolldeck.listRunSandboxes({ runId, which, limit: mostListed });
  print(flags.json === true, page, () => {
    const counts = Object.entries(page.counts)
      .filter(([, count]) => count > 0)
      .map(([state, count]) => `${count} ${state}`);
    if (page.sandboxes.length === 0) return `no sandbox is there${counts.length > 0 ? ` (${counts.join(", ")})` : ""}`;
    const rows = page.sandboxes.map((each) => [
      each.sandboxId,
      each.idleSince === null ? each.state : "idle",
      each.uses === null ? each.purpose : `${each.purpose}, rollout ${each.uses} in it`,
      each.rolloutId,
      each.attempt,
      each.runtime,
      plain(each.image ?? "none"),
      each.keepUntil,
    ]);
    return [
      table(["sandbox", "state", "for", "rollout", "attempt", "runtime", "image", "kept until"], rows),
      counts.join(", "),
      ...(page.more ? [`only the newest ${mostListed} are listed`] : []),
    ].join("\n");
  });
}

async function shell(runId: string, asked: string | undefined, flags: Flags & { yes?: boolean }): Promise<void> {
  const connection = connect(flags);
  const { sandboxes, more } = await connection.rolldeck.listRunSandboxes({ runId, limit: mostListed });
  const sandbox = choose(sandboxes, asked, more);
  if (sandbox.state === "open" && !flags.yes)
    throw new CommandFailure(
      `${sandbox.sandboxId} is the live sandbox of a running rollout: what you type changes what the agent sees. Say --yes to open a shell in it all the same`,
    );
  const { runShell } = await import("./run-shell.ts");
  process.exitCode = await runShell({ ...connection, runId, sandboxId: sandbox.sandboxId });
}

/** @throws CommandFailure where there is none */
function choose(sandboxes: readonly SandboxInfo[], asked: string | undefined, more: boolean): SandboxInfo {
  const there = sandboxes.filter(isThere);
  const chosen = asked === undefined ? there[0] : there.find(({ sandboxId }) => sandboxId === asked);
  if (chosen) return chosen;
  throw new CommandFailure(
    asked === undefined
      ? "no sandbox of this run is there; sandbox.keep in a run's config keeps them to look into"
      : `${asked} is not ${more ? `among the newest ${mostListed} sandboxes` : "a sandbox"} of this run that ${more ? "are" : "is"} there; \`rolldeck sandbox list\` names them`,
  );
}
