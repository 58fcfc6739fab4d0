/** The workloads of the dispatch benchmarks, by the name of the task that plays them: `timed-<kind>-<seed>`. */
import { anchorWorkload, paperWorkload, type Workload } from "@rolldeck/dispatch/testing/paper-workload";
import { z } from "zod";

/** How much faster than real time each is played. */
export const scales = { paper: 100, anchor: 1 } as const;
export type WorkloadKind = keyof typeof scales;
export const workloadKinds = Object.keys(scales) as WorkloadKind[];

export const taskName = (kind: WorkloadKind, seed: number): string => `timed-${kind}-${seed}`;

const TaskName = z.templateLiteral(["timed-", z.enum(["paper", "anchor"]), "-", z.int()]);

/** @throws ZodError for a name that is none of `taskName` */
export function workloadOf(name: string): Workload {
  const [, kind, seed] = TaskName.parse(name).split("-");
  return kind === "paper"
    ? paperWorkload(Number(seed), scales.paper)
    : anchorWorkload(Number(seed), { scale: scales.anchor });
}
