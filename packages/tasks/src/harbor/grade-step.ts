/**
 * One run of a task's tests. In the agent's sandbox the order is: the agent's processes end, its changes to programs are undone, what
 * it left where tests and rewards go is taken away, tests come in, they run, the reward is read. Invariants: nothing that was there
 * before the tests is a reward; the exit code is none either; without a reward there is an error and no verdict.
 */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type ExecResult, type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import type { NewEvidence } from "@rolldeck/contracts/ports/task";
import type { TestReport } from "@rolldeck/contracts/test-report";
import type { HarborTask } from "./harbor-task.ts";
import { distinct, lastWords, runScript, textOf } from "./in-sandbox.ts";
import { parseRewardJson, parseRewardText, type Rewards } from "./reward-file.ts";
import type { TaskStep } from "./task-file.ts";
import { packFolder } from "./task-files.ts";
import { testList } from "./test-list.ts";

export interface GradeScene {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly keep: (evidence: NewEvidence) => Promise<void>;
  /** Of the tests. */
  readonly timeoutMs: number;
  /** Of the tests: absent = the sandbox's own. */
  readonly user: string | null;
  /** With operators' values filled in. */
  readonly variables: Readonly<Record<string, string>>;
  /** The image of a separate verifier may hold its tests: then ours stay out. */
  readonly imageHasTests: boolean;
  /** Undoes what the agent changed of programs, and says what; absent in a sandbox that no agent was in. */
  readonly afterAgent?: () => Promise<string[]>;
  /** Name of the output, kept. */
  readonly outputName: string;
  readonly now: () => number;
}

export interface StepGrade {
  readonly rewards: Rewards;
  readonly report: Omit<TestReport, "success" | "metrics">;
}

const maxRewardBytes = 1024 * 1024;
/** What is made of it has to fit where evidence is kept. */
const maxReportBytes = 4 * 1024 * 1024;
/** Head and tail together of what the tests print. */
const maxOutputBytes = 4 * 1024 * 1024;

/** @throws BoundaryError("verifier" | "sandbox" | "infrastructure") */
export async function gradeStep(task: HarborTask, step: TaskStep, scene: GradeScene): Promise<StepGrade> {
  const phases: { name: string; durationMs: number }[] = [];
  const phase = async <T>(name: string, work: Promise<T>): Promise<T> => {
    const startedAt = scene.now();
    const result = await work;
    phases.push({ name, durationMs: scene.now() - startedAt });
    return result;
  };
  const flags = scene.afterAgent === undefined ? [] : await phase("undo", scene.afterAgent());
  const isPlanted = await phase("clear", clear(scene));
  if (isPlanted && scene.afterAgent !== undefined) flags.push("left files where tests and rewards go");
  try {
    await phase("upload", upload(task, step, scene));
    const result = await phase("tests", run(scene));
    await keepOutput(scene, result);
    const rewards = await phase("reward", readRewards(scene, result));
    const tests = testList((await readIfThere(scene, "ctrf.json", maxReportBytes)) ?? new Uint8Array());
    await leaveNothing(scene);
    const { exitCode, timedOut, durationMs } = result;
    const command = { text: testScript, exitCode, timedOut, durationMs, timeoutMs: scene.timeoutMs };
    return { rewards, report: { version: 1, grader: "harbor", patch: null, command, tests, flags, phases } };
  } catch (cause) {
    // What went wrong first is what counts.
    if (cause instanceof BoundaryError && cause.boundary === "verifier") await leaveNothing(scene).catch(() => {});
    throw cause;
  }
}

const testScript = "/tests/test.sh";

/**
 * Emptied by the agent's and the tests' users first: root has no power over the folders of others here.
 * @returns whether something was there
 */
async function clear({ sandbox, signal, imageHasTests, user }: GradeScene): Promise<boolean> {
  const options = { arguments: imageHasTests ? ["/logs/verifier"] : ["/tests", "/logs/verifier"] };
  const asAgent = `
for path do [ -z "$(ls -A "$path" 2>/dev/null)" ] || echo found; done
rm -rf -- "$@" 2>/dev/null || :`;
  const printed = await runScript(sandbox, asAgent, "clearing old results", options, signal);
  if (user !== null) await runScript(sandbox, asAgent, "clearing old results", { ...options, user }, signal);
  const asRoot = `
for path in /logs /tests /logs/verifier; do [ ! -L "$path" ] || rm -f -- "$path" || exit 1; done
[ ! -d /logs ] || chmod 755 /logs || exit 1
rm -rf -- "$@" || exit 1
mkdir -p /logs/verifier /tests && chmod 777 /logs/verifier || exit 1
[ -z "$(ls -A /logs/verifier)" ]`;
  await runScript(sandbox, asRoot, "clearing old results", { ...options, user: "root" }, signal).catch(notCleared);
  return printed !== "";
}

/** Nothing of a grading is left: neither for the agent's next step nor to be taken for the agent's work by another grading. */
async function leaveNothing({ sandbox, signal, imageHasTests, user: tests }: GradeScene): Promise<void> {
  if (imageHasTests) return;
  for (const user of distinct([null, tests, "root"])) {
    const options = user === undefined ? {} : { user };
    await runScript(sandbox, "rm -rf -- /tests /logs/verifier 2>/dev/null || :", "clearing up", options, signal);
  }
}

const notCleared = (cause: unknown): never => {
  if (!(cause instanceof BoundaryError) || cause.code !== "script_failed") throw cause;
  throw new BoundaryError("verifier", "not_cleared", `what the agent left can't be taken away: ${cause.message}`, {
    cause,
  });
};

/** The task's tests first; a step's own come over them. */
async function upload(task: HarborTask, step: TaskStep, { sandbox, signal, imageHasTests }: GradeScene): Promise<void> {
  if (imageHasTests) return;
  const shared = await packFolder(`${task.folder}/tests`, task.folder, task.marks.tests);
  if (shared !== null) await sandbox.putArchive("/tests", shared, {}, signal);
  if (step.name === null) return;
  const own = await packStepFolder(task, step.name, "tests");
  if (own !== null) await sandbox.putArchive("/tests", own, {}, signal);
}

/** Null where the step has none. @throws BoundaryError("infrastructure", "dataset_changed") */
export async function packStepFolder(
  task: HarborTask,
  step: string,
  part: "tests" | "solution" | "workdir",
): Promise<Uint8Array | null> {
  return packFolder(`${task.folder}/steps/${step}/${part}`, task.folder, task.stepMarks[`${step}/${part}`] ?? null);
}

/** The script's own first line says what runs it; one without, or that can't be run, is bash's, as its authors ran it. */
async function run({ sandbox, signal, timeoutMs, user, variables }: GradeScene): Promise<ExecResult> {
  const asIs = `[ -x ${testScript} ] && head -c 2 ${testScript} | grep -q '#!'`;
  const command = `if ${asIs}; then exec ${testScript}; else exec bash ${testScript}; fi 2>&1`;
  return sandbox.exec(
    {
      command: ["/bin/sh", "-c", command],
      environment: variables,
      timeoutMs,
      maxOutputBytes,
      ...(user === null ? {} : { user }),
    },
    signal,
  );
}

async function keepOutput({ keep, outputName }: GradeScene, result: ExecResult): Promise<void> {
  const content = Buffer.from(`${textOf(result.stdout)}${textOf(result.stderr)}`);
  await keep({
    name: outputName,
    mediaType: "text/plain",
    content,
    wholeBytes: result.stdout.bytes + result.stderr.bytes,
  });
}

async function readRewards(scene: GradeScene, result: ExecResult): Promise<Rewards> {
  const { timeoutMs } = scene;
  // What a run that was ended wrote on its way is no verdict of it.
  if (result.timedOut)
    throw new BoundaryError("verifier", "timeout", `the tests were not done after ${timeoutMs / 1000} s`);
  if (result.flooded) throw new BoundaryError("verifier", "flooded", "the tests printed without end");
  const json = await readIfThere(scene, "reward.json", maxRewardBytes);
  if (json !== null) return parseRewardJson(json);
  const text = await readIfThere(scene, "reward.txt", maxRewardBytes);
  if (text !== null) return parseRewardText(text);
  const how = result.outOfMemory ? "was out of memory" : `exited with ${result.exitCode}`;
  throw new BoundaryError("verifier", "no_reward", `${testScript} ${how} and wrote no reward: ${lastWords(result)}`);
}

async function readIfThere(
  { sandbox, signal }: GradeScene,
  name: string,
  maxBytes: number,
): Promise<Uint8Array | null> {
  try {
    return await sandbox.readFile(`/logs/verifier/${name}`, { maxBytes }, signal);
  } catch (cause) {
    if (!(cause instanceof SandboxFileError)) throw cause;
    if (cause.code === "not_found") return null;
    // The report is for people; a reward that can't be read is none.
    if (name === "ctrf.json") return null;
    throw new BoundaryError("verifier", "bad_reward", `${name}: ${cause.message}`, { cause });
  }
}

export const singleOutputName = artifactNames.testOutput;
