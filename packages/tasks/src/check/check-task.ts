/** All instances of an opened task, some at a time. */
import type { Split, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import { type CheckScene, checkInstance } from "./check-instance.ts";
import { type CheckReport, type InstanceCheck, reportOf } from "./check-report.ts";

export interface CheckRequest extends Omit<CheckScene, "onProgress"> {
  /** Instances whose names begin with one of these; empty = all. */
  readonly only: readonly string[];
  readonly concurrency: number;
  readonly onProgress: (instanceId: string, message: string) => void;
  readonly onChecked: (check: InstanceCheck, done: number, all: number) => void;
}

/** @throws RangeError when there is no instance, or none of a name that was asked for; the signal's reason */
export async function checkTask(request: CheckRequest, warnings: readonly string[] = []): Promise<CheckReport> {
  const instances = chosen(request.task, request.only);
  const checks: InstanceCheck[] = [];
  const waiting = [...instances.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      request.signal.throwIfAborted();
      const [place, instance] = next;
      const onProgress = (message: string): void => request.onProgress(instance.instanceId, message);
      const check = await checkInstance(instance, { ...request, onProgress });
      checks[place] = check;
      request.onChecked(check, Object.keys(checks).length, instances.length);
    }
  };
  // Until the last has closed its sandboxes, also where one failed: the caller lets go of the runtime then.
  const ended = await Promise.allSettled(Array.from({ length: Math.max(1, request.concurrency) }, work));
  for (const each of ended) if (each.status === "rejected") throw each.reason;
  return reportOf(request.task.name, checks, warnings);
}

function chosen(task: Task, only: readonly string[]): TaskInstance[] {
  const all = (["train", "evaluate"] as const).flatMap((split: Split) =>
    Array.from({ length: task.size(split) ?? 0 }, (_, index) => task.instance(split, index)),
  );
  if (all.length === 0) throw new RangeError("the data set has no instances: nothing can be checked");
  if (only.length === 0) return all;
  const asked = all.filter(({ instanceId }) => only.some((name) => instanceId.startsWith(name)));
  if (asked.length > 0) return asked;
  throw new RangeError(
    `no instance is named ${only.join(" or ")}; there are ${all
      .map((one) => one.instanceId)
      .slice(0, 10)
      .join(", ")}`,
  );
}
