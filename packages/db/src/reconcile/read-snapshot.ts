import type { RunSnapshot } from "@rolldeck/contracts/plan";
import type { Split } from "@rolldeck/contracts/ports/task";
import type pg from "pg";

/** What the snapshot needs to know of tasks; the worker gives its registry. */
export interface TaskFacts {
  /** Instances of a split; null = endless. */
  size(task: string, split: Split): number | null;
  sandbox(task: string): "none" | "process" | "image";
}

export function readSnapshot(
  _pool: pg.Pool,
  _runId: string,
  _tasks: TaskFacts,
): Promise<{ snapshot: RunSnapshot; wake: number } | null> {
  return Promise.reject(new Error("under construction"));
}
