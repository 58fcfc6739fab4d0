/**
 * What a verifier has of sandboxes during one grading. Invariants: a fresh one is opened for each call and closed when the grading
 * ends, however it ends; what was collected is read back as exact bytes.
 */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { GradingSandboxes, NewEvidence, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import { readEvidence } from "@rolldeck/db/artifacts";
import type { Pool } from "@rolldeck/db/connect";
import { addSandboxPhases } from "@rolldeck/db/hot/sandboxes";
import { saveEvidence } from "../save-evidence.ts";
import type { OpenSandbox, RolloutSandboxes, StageOfRollout } from "./rollout-sandboxes.ts";

export interface Grading {
  readonly pool: Pool;
  readonly sandboxes: RolloutSandboxes;
  readonly of: StageOfRollout & { readonly turns: number };
  readonly task: Task;
  readonly instance: TaskInstance;
  readonly signal: AbortSignal;
}

export class SandboxesOfGrading implements GradingSandboxes {
  readonly #grading: Grading;
  readonly #opened: OpenSandbox[] = [];
  #agent: OpenSandbox | null = null;
  #isOver = false;

  constructor(grading: Grading) {
    this.#grading = grading;
  }

  // Verifiers hand these on by themselves: they belong to this grading wherever they are called.
  readonly open = async (spec?: TaskSandbox): Promise<Sandbox> => {
    const { sandboxes, of, task, instance, signal } = this.#grading;
    const wanted = { task, spec: spec ?? specOf(task, instance), purpose: "grade" } as const;
    const opened = await sandboxes.open(of, wanted, { inPlace: false }, signal);
    this.#opened.push(opened);
    if (!this.#isOver) return opened.sandbox;
    // The grading was given up while this one opened.
    await sandboxes.close(opened.runtime, opened.sandbox.id, { reason: "its grading is over" });
    throw new BoundaryError("sandbox", "gone", "the grading is over");
  };

  readonly agent = async (): Promise<Sandbox> => {
    const { sandboxes, of, signal } = this.#grading;
    this.#agent ??= await sandboxes.attachAgent(of.rolloutId, of.attempt, signal);
    return this.#agent.sandbox;
  };

  readonly collected = (name: string): Promise<Uint8Array | null> => {
    const { pool, of } = this.#grading;
    return readEvidence(pool, of, name);
  };

  readonly keep = (evidence: NewEvidence): Promise<void> => {
    const { pool, of, signal } = this.#grading;
    return saveEvidence(pool, of, of.turns, evidence, signal);
  };

  /** Closes what was opened and keeps the log. Never throws but when the log could not be kept under the claim. */
  async end(verifyMs: number): Promise<void> {
    const { pool, sandboxes } = this.#grading;
    this.#isOver = true;
    const used = [...this.#opened, ...(this.#agent ? [this.#agent] : [])];
    await Promise.all(
      this.#opened.map(({ runtime, sandbox }) =>
        sandboxes.close(runtime, sandbox.id, { reason: "graded", phases: { verify: verifyMs } }),
      ),
    );
    if (this.#agent) await addSandboxPhases(pool, this.#agent.sandbox.id, { verify: verifyMs });
    const content = Buffer.from(used.map(({ log }) => log.text()).join(""));
    if (content.length > 0) {
      await this.keep({ name: artifactNames.gradeLog, mediaType: "application/x-ndjson", content });
    }
  }
}

/** @throws TypeError for a task that says it has sandboxes and does not say which: a fault of the task's code */
export function specOf(task: Task, instance: TaskInstance): TaskSandbox {
  const spec = task.sandboxFor?.(instance);
  if (spec === undefined) throw new TypeError(`task ${task.name} needs a sandbox and says nothing of it`);
  return spec;
}
