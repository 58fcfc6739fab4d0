/**
 * One instance held against its own solution: solved as its author does it must succeed, left alone it must not. It goes through
 * set-up, collection and grading as a rollout does, but for the agent. Invariants: every sandbox that was opened is closed, whatever
 * happens; trouble is a result, never a silent pass.
 */
import { randomBytes } from "node:crypto";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Sandbox, type SandboxRuntime, sandboxId, type TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type {
  FinishedRollout,
  GradingSandboxes,
  NewEvidence,
  Task,
  TaskInstance,
} from "@rolldeck/contracts/ports/task";
import { type CheckSide, type InstanceCheck, judge } from "./check-report.ts";

export interface CheckScene {
  readonly task: Task;
  readonly runtime: SandboxRuntime;
  /** Gradings of each side. */
  readonly repeat: number;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal;
  /** Milliseconds of a steady clock. */
  readonly now: () => number;
}

const leaseMs = 10 * 60_000;
const maxLifeMs = 24 * 3_600_000;
const maxSteps = 1000;

export async function checkInstance(instance: TaskInstance, scene: CheckScene): Promise<InstanceCheck> {
  const startedAt = scene.now();
  let image = "none";
  let oracle: CheckSide | null = null;
  let noOp: CheckSide | null = null;
  let trouble: string | null = null;
  try {
    const spec = specOf(scene.task, instance);
    image = imageText(spec);
    noOp = await side("no-op", instance, spec, scene);
    if (scene.task.solve !== undefined) oracle = await side("oracle", instance, spec, scene);
  } catch (cause) {
    scene.signal.throwIfAborted();
    if (!isNoSolution(cause)) trouble = troubleText(cause);
  }
  const { state, reason } = judge(oracle, noOp, trouble);
  const { instanceId, split } = instance;
  return { instanceId, split, state, image, oracle, noOp, reason, durationMs: scene.now() - startedAt };
}

const isNoSolution = (cause: unknown): boolean => cause instanceof BoundaryError && cause.code === "no_solution";

function troubleText(cause: unknown): string {
  if (cause instanceof BoundaryError) return `${cause.boundary}, ${cause.code}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}

function specOf(task: Task, instance: TaskInstance): TaskSandbox {
  const spec = task.sandboxFor?.(instance);
  if (spec === undefined) throw new BoundaryError("sandbox", "refused", `task ${task.name} has no sandboxes to check`);
  return spec;
}

const imageText = ({ image }: TaskSandbox): string => {
  if (image === null) return "none";
  return image.kind === "name" ? image.name : `built from ${image.context}/${image.dockerfile}`;
};

async function side(
  kind: "oracle" | "no-op",
  instance: TaskInstance,
  spec: TaskSandbox,
  scene: CheckScene,
): Promise<CheckSide> {
  const startedAt = scene.now();
  const opened = new Opened(scene, spec);
  try {
    scene.onProgress(`${kind}: opening`);
    const agent = await opened.open(spec);
    const collected = await act(kind, instance, agent, scene);
    if (scene.task.gradeInPlace !== true) await opened.close(agent.id);
    const rewards: number[] = [];
    let succeeded = 0;
    for (let grading = 1; grading <= scene.repeat; grading++) {
      scene.onProgress(`${kind}: grading${scene.repeat === 1 ? "" : ` ${grading} of ${scene.repeat}`}`);
      const verdict = await grade(instance, agent, collected, opened, scene);
      rewards.push(verdict.reward);
      if (verdict.success) succeeded++;
    }
    return { succeeded, graded: scene.repeat, rewards, durationMs: scene.now() - startedAt };
  } finally {
    await opened.closeAll();
  }
}

/** The agent's time: by the author, or by nobody. @returns what later stages read, by name */
async function act(
  kind: "oracle" | "no-op",
  instance: TaskInstance,
  sandbox: Sandbox,
  { task, signal, onProgress }: CheckScene,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const collected = new Map<string, Uint8Array>();
  const keep = async ({ name, content }: NewEvidence): Promise<void> => void collected.set(name, content);
  onProgress(`${kind}: setting up`);
  await task.setUp?.(instance, sandbox, signal);
  for (let done = 0; done < maxSteps; done++) {
    if (kind === "oracle") {
      onProgress("oracle: solving");
      await task.solve?.(instance, sandbox, signal);
    }
    const next = (await task.nextStep?.(instance, sandbox, { done, keep, signal })) ?? null;
    if (next === null) break;
  }
  if (task.gradeInPlace !== true) await sandbox.killAll(signal);
  for (const evidence of (await task.collect?.(instance, sandbox, signal)) ?? []) await keep(evidence);
  return collected;
}

async function grade(
  instance: TaskInstance,
  agent: Sandbox,
  collected: ReadonlyMap<string, Uint8Array>,
  opened: Opened,
  { task, signal }: CheckScene,
) {
  const kept: string[] = [];
  const sandboxes: GradingSandboxes = {
    open: async (spec) => {
      const sandbox = await opened.open(spec ?? null);
      kept.push(sandbox.id);
      return sandbox;
    },
    agent: async () => {
      if (task.gradeInPlace === true) return agent;
      throw new BoundaryError("sandbox", "gone", "the agent's sandbox is closed before a fresh one grades");
    },
    collected: async (name) => collected.get(name) ?? null,
    keep: async () => {},
  };
  const rollout: FinishedRollout = { ending: "finish_tool", finalAnswer: "", turns: 1, toolCalls: [] };
  try {
    return await task.verify(instance, rollout, { signal, judge: null, sandboxes });
  } finally {
    for (const id of kept) await opened.close(id);
  }
}

/** Sandboxes of one side, renewed while they are used. */
class Opened {
  readonly #scene: CheckScene;
  readonly #spec: TaskSandbox;
  readonly #ids = new Set<string>();
  readonly #renewal: NodeJS.Timeout;

  constructor(scene: CheckScene, spec: TaskSandbox) {
    this.#scene = scene;
    this.#spec = spec;
    // A renewal that fails is felt by whoever uses the sandbox next.
    this.#renewal = setInterval(() => {
      if (this.#ids.size > 0) scene.runtime.renew([...this.#ids], leaseMs, scene.signal).catch(() => {});
    }, leaseMs / 5);
    this.#renewal.unref();
  }

  /** @param spec null = as the agent's */
  async open(spec: TaskSandbox | null): Promise<Sandbox> {
    const id = sandboxId(randomBytes(20));
    const labels = { purpose: "check" };
    const wanted = { ...(spec ?? this.#spec), id, labels, mounts: [], leaseMs, maxLifeMs };
    const sandbox = await this.#scene.runtime.open(wanted, this.#scene.signal);
    this.#ids.add(id);
    return sandbox;
  }

  async close(id: string): Promise<void> {
    if (!this.#ids.delete(id)) return;
    // Closed also when the check was broken off: without the signal.
    await this.#scene.runtime.close(id, AbortSignal.timeout(60_000));
  }

  async closeAll(): Promise<void> {
    clearInterval(this.#renewal);
    await Promise.all([...this.#ids].map((id) => this.close(id)));
  }
}
