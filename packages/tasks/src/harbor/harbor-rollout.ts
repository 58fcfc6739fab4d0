/**
 * A Harbor task's part in a rollout: set-up, the steps in between, what is collected, the verdict. Nothing of a rollout is kept here:
 * what later stages need is evidence, so that any worker can go on.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type {
  FinishedRollout,
  GradingSandboxes,
  GradingScene,
  NewEvidence,
  Verdict,
} from "@rolldeck/contracts/ports/task";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { readManifest, restoreArtifacts, takeArtifacts } from "./artifacts.ts";
import { runCollectHooks } from "./collect-hooks.ts";
import { gradeStep, type StepGrade, singleOutputName } from "./grade-step.ts";
import type { HarborTask } from "./harbor-task.ts";
import { distinct, runScript } from "./in-sandbox.ts";
import { harborMessages } from "./messages.ts";
import { fillInAll, type OperatorVariables } from "./operator-variables.ts";
import { type HarborOptions, networkOf } from "./options.ts";
import type { ProgramGuard } from "./program-guard.ts";
import { reportEvidence } from "./report.ts";
import { agentSandbox, verifierSandbox } from "./sandbox-spec.ts";
import { belowMinReward, type GradedStep, StepResult, stepResultName, verdictOf } from "./step-result.ts";
import { makeLogFolders, startStep, startTask } from "./step-start.ts";
import type { TaskStep } from "./task-file.ts";

export interface RolloutScene {
  readonly options: HarborOptions;
  readonly variables: OperatorVariables;
  readonly guard: ProgramGuard;
}
type Keep = GradingSandboxes["keep"];
interface Place {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly keep: Keep;
  readonly outputName: string;
  /** Opens an untouched sandbox of the agent's image; null where none can be had. */
  readonly fresh: (() => Promise<Sandbox>) | null;
}
interface Graded {
  readonly step: GradedStep;
  /** Null for one that was graded before. */
  readonly grade: StepGrade | null;
}

export class HarborRollout {
  readonly #task: HarborTask;
  readonly #scene: RolloutScene;

  constructor(task: HarborTask, scene: RolloutScene) {
    this.#task = task;
    this.#scene = scene;
  }

  /** @throws BoundaryError("sandbox" | "infrastructure") */
  async setUp(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    if (this.#scene.options.guardPrograms) await this.#scene.guard.learn(this.#image(), sandbox, signal);
    await startTask(this.#task, sandbox, signal);
    await startStep(this.#task, this.#stepAt(0), sandbox, signal);
  }

  /** @param scene `done` is the index of the step that was just answered */
  async nextStep(
    sandbox: Sandbox,
    { done, keep, signal }: { readonly done: number; readonly keep: Keep; readonly signal: AbortSignal },
  ): Promise<ToolOutcome | null> {
    const next = this.#task.file.steps[done + 1];
    if (next === undefined) return null;
    const result = await this.#endStep(this.#stepAt(done), done, sandbox, { keep, signal });
    await keep(json(stepResultName(done), result));
    if (result.stopped) return null;
    await runScript(sandbox, "rm -rf -- /logs/agent 2>/dev/null || :", "making place for the next step", {}, signal);
    await makeLogFolders(sandbox, signal);
    await startStep(this.#task, next, sandbox, signal);
    return {
      output: "",
      context: { kind: "restart", messages: harborMessages(this.#task, done + 1, this.#scene.options) },
    };
  }

  async #endStep(
    step: TaskStep,
    index: number,
    sandbox: Sandbox,
    { keep, signal }: { readonly keep: Keep; readonly signal: AbortSignal },
  ): Promise<StepResult> {
    const failedHooks = await runCollectHooks(step.verifier.collect, sandbox, signal);
    const prefix = stepPrefix(index);
    for (const evidence of await takeArtifacts({ prefix, artifacts: step.artifacts, failedHooks }, sandbox, signal)) {
      await keep(evidence);
    }
    const name = step.name ?? "";
    if (step.verifier.separate) return { version: 1, step: name, rewards: null, stopped: false, flags: [] };
    const place = { sandbox, signal, keep, outputName: `${prefix}output.txt`, fresh: null };
    const { rewards, report } = await this.#gradeInPlace(step, place);
    const stopped = belowMinReward(rewards, step.minReward) !== null;
    return { version: 1, step: name, rewards: { ...rewards }, stopped, flags: report.flags };
  }

  /** Hooks and artifacts of the step that the agent was at: which one that is, the verdict knows. */
  async collect(sandbox: Sandbox, signal: AbortSignal): Promise<NewEvidence[]> {
    const { steps } = this.#task.file;
    const hooks = new Map(
      steps.flatMap(({ verifier }) => verifier.collect).map((hook) => [JSON.stringify(hook), hook]),
    );
    const artifacts = new Map(steps.flatMap((step) => step.artifacts).map((artifact) => [artifact.source, artifact]));
    const failedHooks = await runCollectHooks([...hooks.values()], sandbox, signal);
    return takeArtifacts({ prefix: "", artifacts: [...artifacts.values()], failedHooks }, sandbox, signal);
  }

  /** @throws BoundaryError("verifier" | "sandbox" | "infrastructure") */
  async verify(rollout: FinishedRollout, { signal, sandboxes }: GradingScene): Promise<Verdict> {
    if (sandboxes === undefined)
      throw new BoundaryError("verifier", "no_sandbox", "a Harbor task is graded in a sandbox");
    const { file } = this.#task;
    const graded: Graded[] = [];
    let stopped = false;
    for (let index = 0; index < file.steps.length && !stopped; index++) {
      const step = this.#stepAt(index);
      const kept = await readResult(await sandboxes.collected(stepResultName(index)));
      if (kept?.rewards)
        graded.push({ step: { name: kept.step, rewards: kept.rewards, flags: kept.flags }, grade: null });
      else graded.push(await this.#gradeNow(step, index, kept !== null, rollout, { sandboxes, signal }));
      stopped = kept?.stopped ?? false;
      if (kept === null) break;
    }
    const verdict = verdictOf(
      file,
      graded.map(({ step }) => step),
      stopped,
      this.#scene.options,
    );
    const failedHooks = (await readManifest("", (name) => sandboxes.collected(name)))?.failedHooks ?? [];
    for (const evidence of reportEvidence(graded, verdict, this.#scene.options.rewardKey))
      await sandboxes.keep(evidence);
    const notes = [verdict.notes, ...failedHooks.map((hook) => `verifier.collect: ${hook}`)].filter(
      (note) => note !== null,
    );
    return { ...verdict, notes: notes.length === 0 ? null : notes.join("\n").slice(0, 4000) };
  }

  /** @param ended the agent went on after it: what it left is under the step's own names */
  async #gradeNow(
    step: TaskStep,
    index: number,
    ended: boolean,
    { finalAnswer }: FinishedRollout,
    { sandboxes, signal }: { readonly sandboxes: GradingSandboxes; readonly signal: AbortSignal },
  ): Promise<Graded> {
    const keep: Keep = (evidence) => sandboxes.keep(evidence);
    const outputName = ended ? `${stepPrefix(index)}output.txt` : singleOutputName;
    const answer = this.#scene.options.answer && !ended ? finalAnswer : null;
    let grade: StepGrade;
    if (step.verifier.separate) {
      const scene = { variables: this.#scene.variables, network: networkOf(this.#scene.options) };
      const sandbox = await sandboxes.open(verifierSandbox(this.#task, step, scene));
      await makeLogFolders(sandbox, signal);
      const collected = (name: string) => sandboxes.collected(name);
      await restoreArtifacts(ended ? stepPrefix(index) : "", collected, sandbox, signal);
      await writeAnswer(sandbox, answer, signal);
      grade = await this.#grade(step, { sandbox, signal, keep, outputName, fresh: null }, null);
    } else {
      const sandbox = await sandboxes.agent();
      await writeAnswer(sandbox, answer, signal);
      grade = await this.#gradeInPlace(step, { sandbox, signal, keep, outputName, fresh: () => sandboxes.open() });
    }
    return { step: { name: step.name ?? "", rewards: grade.rewards, flags: grade.report.flags }, grade };
  }

  #gradeInPlace(step: TaskStep, place: Place): Promise<StepGrade> {
    const { options, guard } = this.#scene;
    const { sandbox, signal, fresh } = place;
    return this.#grade(step, place, async () => {
      // Tests of a grading that was broken off may run on, and would write their reward beside this one's.
      const tests = step.verifier.user ?? (this.#task.file.agent.user === null ? null : "root");
      const users = distinct([null, tests, ...step.verifier.collect.map(({ user }) => user)]);
      if (options.agentProcesses === "end") for (const user of users) await sandbox.killAll(signal, user);
      return options.guardPrograms ? guard.putRight(this.#image(), sandbox, fresh, signal) : [];
    });
  }

  async #grade(step: TaskStep, place: Place, afterAgent: (() => Promise<string[]>) | null): Promise<StepGrade> {
    const { options, variables } = this.#scene;
    const { user, timeoutMs } = step.verifier;
    // In the agent's sandbox the agent's user is what stands for nobody said.
    const other = this.#task.file.agent.user === null || afterAgent === null ? null : "root";
    const { sandbox, signal, keep, outputName } = place;
    return gradeStep(this.#task, step, {
      sandbox,
      signal,
      keep,
      outputName,
      timeoutMs: timeoutMs * options.timeoutMultiplier,
      user: user ?? other,
      variables: fillInAll(step.verifier.variables, variables),
      imageHasTests: step.verifier.separate && (await hasTests(sandbox, signal)),
      ...(afterAgent === null ? {} : { afterAgent }),
      now: () => performance.now(),
    });
  }

  #stepAt(index: number): TaskStep {
    const step = this.#task.file.steps[index];
    if (step === undefined) throw new RangeError(`${this.#task.name} has no step ${index}`);
    return step;
  }

  /** Names the image among all that this process knows. */
  #image(): string {
    const { image } = agentSandbox(this.#task, { variables: {}, network: { mode: "none" } });
    return JSON.stringify([image, this.#task.marks.environment]);
  }
}

const stepPrefix = (index: number): string => `step-${index + 1}-`;

const json = (name: string, value: unknown): NewEvidence => ({
  name,
  mediaType: "application/json",
  content: Buffer.from(JSON.stringify(value)),
});

async function readResult(bytes: Uint8Array | null): Promise<StepResult | null> {
  return bytes === null ? null : StepResult.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
}

async function writeAnswer(sandbox: Sandbox, answer: string | null, signal: AbortSignal): Promise<void> {
  if (answer === null) return;
  await sandbox.writeFile("/logs/agent/answer.txt", Buffer.from(answer), { mode: 0o644, user: "root" }, signal);
}

async function hasTests(sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
  const printed = await runScript(sandbox, "[ -f /tests/test.sh ] && echo yes || :", "looking for tests", {}, signal);
  return printed.trim() === "yes";
}
