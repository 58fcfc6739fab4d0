/** What the API server answers, as far as it is used. */
import { z } from "zod";

const labels = z.record(z.string(), z.string()).nullish();
const quantity = z.record(z.string(), z.string()).nullish();

export const Node = z.object({
  metadata: z.object({ name: z.string(), labels }),
  spec: z.object({ unschedulable: z.boolean().nullish() }).nullish(),
  status: z
    .object({
      allocatable: quantity,
      nodeInfo: z.object({ osImage: z.string().nullish() }).nullish(),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
    })
    .nullish(),
});
export type Node = z.infer<typeof Node>;

const State = z
  .object({
    waiting: z.object({ reason: z.string().nullish(), message: z.string().nullish() }).nullish(),
    terminated: z.object({ exitCode: z.number(), reason: z.string().nullish() }).nullish(),
  })
  .nullish();

export const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    labels,
    annotations: labels,
    /** From when it is being ended on. */
    deletionTimestamp: z.coerce.date().nullish(),
  }),
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      message: z.string().nullish(),
      podIP: z.string().nullish(),
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().nullish(),
            message: z.string().nullish(),
          }),
        )
        .nullish(),
      containerStatuses: z.array(z.object({ name: z.string(), state: State })).nullish(),
    })
    .nullish(),
});
export type Pod = z.infer<typeof Pod>;
