/**
 * Grading of one step of a Harbor task, where its verifier works: in the agent's sandbox or apart. Invariant: what can't be graded is
 * an error, but where the agent's own sandbox is shown to be to blame, which is 0 with the reason.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { FinishedRollout, GradingSandboxes } from "@rolldeck/contracts/ports/task";
import { restoreArtifacts, takeArtifacts } from "./artifacts.ts";
import { brokenFlag, mayBeBroken, mustHaveShell, whyBroken } from "./broken-sandbox.ts";
import { gradeStep, type StepGrade, singleOutputName } from "./grade-step.ts";
import type { HarborTask } from "./harbor-task.ts";
import { distinct, runScript } from "./in-sandbox.ts";
import { fillInAll, type OperatorVariables } from "./operator-variables.ts";
import { type HarborOptions, networkOf } from "./options.ts";
import type { ProgramGuard } from "./program-guard.ts";
import { agentSandbox, verifierSandbox } from "./sandbox-spec.ts";
import { type GradedStep, stepPrefix } from "./step-result.ts";
import { makeLogFolders } from "./step-start.ts";
import type { TaskStep } from "./task-file.ts";

export interface RolloutScene {
  readonly options: HarborOptions;
  readonly variables: OperatorVariables;
  readonly guard: ProgramGuard;
}

type Keep = GradingSandboxes["keep"];
interface GradingPlace {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly keep: Keep;
  readonly outputName: string;
  /** Opens an untouched sandbox of the agent's image; null where none can be had. */
  readonly fresh: (() => Promise<Sandbox>) | null;
}
export interface Graded {
  readonly step: GradedStep;
  /** Null for one that was graded before, or can't be. */
  readonly grade: StepGrade | null;
  /** Why the agent's sandbox can't be graded in any more: its own doing, and 0. */
  readonly broken?: string;
}

export class StepGrader {
  readonly #task: HarborTask;
  readonly #scene: RolloutScene;

  constructor(task: HarborTask, scene: RolloutScene) {
    this.#task = task;
    this.#scene = scene;
  }

  /** @param ended the agent went on after it: what it left is under the step's own names */
  async gradeNow(
    step: TaskStep,
    index: number,
    ended: boolean,
    { finalAnswer }: FinishedRollout,
    { sandboxes, signal }: { readonly sandboxes: GradingSandboxes; readonly signal: AbortSignal },
  ): Promise<Graded> {
    const keep: Keep = (evidence) => sandboxes.keep(evidence);
    const outputName = ended ? `${stepPrefix(index)}output.txt` : singleOutputName;
    const answer = this.#scene.options.answer && !ended ? finalAnswer : null;
    const fresh = () => sandboxes.open();
    const name = step.name ?? "";
    let grade: StepGrade | string;
    if (step.verifier.separate) {
      const scene = { variables: this.#scene.variables, network: networkOf(this.#scene.options) };
      const sandbox = await sandboxes.open(verifierSandbox(this.#task, step, scene));
      await makeLogFolders(sandbox, signal);
      const collected = (evidence: string) => sandboxes.collected(evidence);
      const prefix = ended ? stepPrefix(index) : "";
      const unread = await restoreOrWhyNot({ prefix, collected, sandbox, fresh }, signal);
      await writeAnswer(sandbox, answer, signal);
      grade = unread ?? (await this.#grade(step, { sandbox, signal, keep, outputName, fresh: null }, null));
    } else {
      const sandbox = await sandboxes.agent();
      grade = await this.#gradeOrWhyNot(step, { sandbox, signal, keep, outputName, fresh }, answer);
    }
    if (typeof grade !== "string") return { step: { name, rewards: grade.rewards, flags: grade.report.flags }, grade };
    const rewards = { [this.#scene.options.rewardKey]: 0 };
    return { step: { name, rewards, flags: [brokenFlag] }, grade: null, broken: grade };
  }

  /**
   * In the agent's sandbox. Where that can't be done, or no reward comes of it, the same tests run in an untouched sandbox, and once
   * more in the agent's.
   * @returns why, where the agent's sandbox is to blame @throws what the grading failed of, where nothing shows that it is
   */
  async #gradeOrWhyNot(
    step: TaskStep,
    place: GradingPlace & { readonly fresh: () => Promise<Sandbox> },
    answer: string | null,
  ): Promise<StepGrade | string> {
    const { sandbox, signal, fresh } = place;
    const once = async (): Promise<StepGrade> => {
      await mustHaveShell(sandbox, signal);
      await writeAnswer(sandbox, answer, signal);
      return this.#gradeInPlace(step, place);
    };
    try {
      return await once();
    } catch (cause) {
      if (!mayBeBroken(cause)) throw cause;
      const why = await whyBroken(sandbox, fresh, signal);
      if (why !== null) return why;
      if (!(await this.#worksUntouched(step, await fresh(), signal))) throw cause;
    }
    return once().catch((again: unknown) => {
      if (!mayBeBroken(again)) throw again;
      return `its tests write a reward in an untouched sandbox, and none in it: ${again.message}`;
    });
  }

  /** Whether the step's tests write a reward, whichever, where nobody did anything. */
  async #worksUntouched(step: TaskStep, sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
    const place: GradingPlace = {
      sandbox,
      signal,
      keep: async () => undefined,
      outputName: singleOutputName,
      fresh: null,
    };
    try {
      await this.#grade(step, place, async () => []);
      return true;
    } catch (cause) {
      if (cause instanceof BoundaryError && cause.boundary === "verifier") return false;
      throw cause;
    }
  }

  #gradeInPlace(step: TaskStep, place: GradingPlace): Promise<StepGrade> {
    const { options, guard } = this.#scene;
    const { sandbox, signal, fresh } = place;
    return this.#grade(step, place, async () => {
      await mustHaveShell(sandbox, signal);
      // Tests of a grading that was broken off may run on, and would write their reward beside this one's.
      const tests = step.verifier.user ?? (this.#task.file.agent.user === null ? null : "root");
      const users = distinct([null, tests, ...step.verifier.collect.map(({ user }) => user)]);
      if (options.agentProcesses === "end") for (const user of users) await sandbox.killAll(signal, user);
      return options.guardPrograms ? guard.putRight(this.imageKey(), sandbox, fresh, signal) : [];
    });
  }

  async #grade(step: TaskStep, place: GradingPlace, afterAgent: (() => Promise<string[]>) | null): Promise<StepGrade> {
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

  /** Null where the agent's sandbox may be what is in the way, twice. */
  async gradeBetween(step: TaskStep, place: GradingPlace): Promise<StepGrade | null> {
    for (let tries = 0; tries < 2; tries++) {
      try {
        return await this.#gradeInPlace(step, place);
      } catch (cause) {
        if (!mayBeBroken(cause)) throw cause;
      }
    }
    return null;
  }

  /** Names the image among all that this process knows. */
  imageKey(): string {
    const { image } = agentSandbox(this.#task, { variables: {}, network: { mode: "none" } });
    return JSON.stringify([image, this.#task.marks.environment]);
  }
}

/**
 * @returns why the agent's sandbox is to blame that something can't be put where it was: it could not be read there, and can in an
 *   untouched one
 * @throws BoundaryError("verifier", "not_collected" | "unreadable")
 */
async function restoreOrWhyNot(
  from: {
    readonly prefix: string;
    readonly collected: GradingSandboxes["collected"];
    readonly sandbox: Sandbox;
    readonly fresh: () => Promise<Sandbox>;
  },
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await restoreArtifacts(from.prefix, from.collected, from.sandbox, signal);
    return null;
  } catch (cause) {
    if (!(cause instanceof BoundaryError) || cause.code !== "unreadable") throw cause;
    const untouched = await from.fresh();
    await makeLogFolders(untouched, signal);
    const manifest = await takeArtifacts({ prefix: "", artifacts: [], failedHooks: [] }, untouched, signal);
    if (manifest.length < 2) throw cause;
    return cause.message;
  }
}

async function writeAnswer(sandbox: Sandbox, answer: string | null, signal: AbortSignal): Promise<void> {
  if (answer === null) return;
  await sandbox.writeFile("/logs/agent/answer.txt", Buffer.from(answer), { mode: 0o644, user: "root" }, signal);
}

async function hasTests(sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
  const printed = await runScript(sandbox, "[ -f /tests/test.sh ] && echo yes || :", "looking for tests", {}, signal);
  return printed.trim() === "yes";
}
