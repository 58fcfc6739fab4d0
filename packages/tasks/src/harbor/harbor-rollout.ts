/**
 * A Harbor task's part in a rollout: set-up, the steps in between, what is collected, the verdict. Nothing of a rollout is kept here:
 * what later stages need is evidence, so that any worker can go on.
 */

import { headWithin } from "@rolldeck/agent/core/cut-text";
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
import { readManifest, takeArtifacts } from "./artifacts.ts";
import { runCollectHooks } from "./collect-hooks.ts";
import type { HarborTask } from "./harbor-task.ts";
import { runScript } from "./in-sandbox.ts";
import { harborMessages } from "./messages.ts";
import { reportEvidence } from "./report.ts";
import { type Graded, type RolloutScene, StepGrader } from "./step-grader.ts";
import { belowMinReward, StepResult, stepPrefix, stepResultName, verdictOf } from "./step-result.ts";
import { makeLogFolders, startStep, startTask } from "./step-start.ts";
import type { TaskStep } from "./task-file.ts";

type Keep = GradingSandboxes["keep"];

export class HarborRollout {
  readonly #task: HarborTask;
  readonly #scene: RolloutScene;
  readonly #grader: StepGrader;

  constructor(task: HarborTask, scene: RolloutScene) {
    this.#task = task;
    this.#scene = scene;
    this.#grader = new StepGrader(task, scene);
  }

  /** @throws BoundaryError("sandbox" | "infrastructure") */
  async setUp(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    if (this.#scene.options.guardPrograms) await this.#scene.guard.learn(this.#grader.imageKey(), sandbox, signal);
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
    const grade = await this.#grader.gradeBetween(step, place);
    // Whose fault it is, the verdict tells, which can look into an untouched sandbox.
    if (grade === null) return { version: 1, step: name, rewards: null, stopped: true, flags: [] };
    const { rewards, report } = grade;
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
      const now: Graded = kept?.rewards
        ? { step: { name: kept.step, rewards: kept.rewards, flags: kept.flags }, grade: null }
        : await this.#grader.gradeNow(step, index, kept !== null, rollout, { sandboxes, signal });
      graded.push(now);
      stopped = kept === null || now.broken !== undefined ? false : isLast(step, kept, now);
      if (kept === null || now.broken !== undefined) break;
    }
    return this.#verdict(graded, stopped, sandboxes);
  }

  async #verdict(graded: readonly Graded[], stopped: boolean, sandboxes: GradingSandboxes): Promise<Verdict> {
    const steps = graded.map(({ step }) => step);
    const counted = verdictOf(this.#task.file, steps, stopped, this.#scene.options);
    const broken = graded.flatMap((each) => each.broken ?? []);
    const verdict = broken.length === 0 ? counted : { ...counted, success: false };
    const failedHooks = (await readManifest("", (name) => sandboxes.collected(name)))?.failedHooks ?? [];
    for (const evidence of reportEvidence(graded, verdict, this.#scene.options.rewardKey))
      await sandboxes.keep(evidence);
    const told = [...broken.map((why) => `the agent broke its sandbox: ${why}`), verdict.notes];
    const notes = [...told, ...failedHooks.map((hook) => `verifier.collect: ${hook}`)].filter((note) => note !== null);
    return { ...verdict, notes: notes.length === 0 ? null : headWithin(notes.join("\n"), 4000) };
  }

  #stepAt(index: number): TaskStep {
    const step = this.#task.file.steps[index];
    if (step === undefined) throw new RangeError(`${this.#task.name} has no step ${index}`);
    return step;
  }
}

/**
 * Whether it is the last step for the agent, whose work was graded after it went on, or could not.
 * @throws BoundaryError("verifier", "step_lost") when it could have gone on and was not let
 */
function isLast(step: TaskStep, kept: StepResult, { step: { rewards } }: Graded): boolean {
  if (!kept.stopped || kept.rewards !== null) return kept.stopped;
  if (belowMinReward(rewards, step.minReward) !== null) return true;
  const message = `step ${kept.step} could be graded only after the agent's end, so the steps after it were not begun`;
  throw new BoundaryError("verifier", "step_lost", message);
}

const json = (name: string, value: unknown): NewEvidence => ({
  name,
  mediaType: "application/json",
  content: Buffer.from(JSON.stringify(value)),
});

async function readResult(bytes: Uint8Array | null): Promise<StepResult | null> {
  return bytes === null ? null : StepResult.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
}
