/** How a run is dispatched while it runs: bounds and weight, parts of it that are held or cancelled, and what projects may take. */
import { z } from "zod";
import { resources } from "../plan.ts";
import { Bounds, DispatcherChange, DispatcherConfig } from "../run-config.ts";
import { RunId } from "./runs.ts";

const bound = (name: keyof z.input<typeof Bounds>) => Bounds.shape[name].unwrap().optional();

/** What is left out stays as it is, of the bounds, too. */
export const ChangeDispatcher = DispatcherChange.extend({
  runId: RunId,
  bounds: z
    .strictObject({ init: bound("init"), run: bound("run"), evaluate: bound("evaluate") })
    .optional()
    .describe("Rollouts in each stage at once; what runs already comes to its end"),
});
export const DispatcherReply = z.object({
  runId: z.string(),
  /** As the run is dispatched now. */
  dispatcher: DispatcherConfig,
  /** What was changed of the config since launch. */
  change: DispatcherChange,
});

/**
 * `hold`: what a worker has comes to the end of its stage, then waits. `resume`: it goes on. `cancel`: its unsettled rollouts end as
 * cancelled at once, and what they did can still be read.
 */
export const PartActions = ["hold", "resume", "cancel"] as const;
export type PartAction = (typeof PartActions)[number];
const asked = { action: z.enum(PartActions), reason: z.string().max(400).nullish() };
const PartId = z.string().regex(/^[0-9a-z]{8,40}$/, "an id is 8 to 40 lower-case letters and digits");
export const ActOnStep = z.strictObject({ stepId: PartId, ...asked });
export const ActOnGroup = z.strictObject({ groupId: PartId, ...asked });
export const ActOnRollout = z.strictObject({ rolloutId: PartId, ...asked });
export const PartReply = z.object({
  runId: z.string(),
  part: z.enum(["step", "group", "rollout"]),
  id: z.string(),
  /** It, or what it belongs to, is held. */
  held: z.boolean(),
  /** Nothing more comes of it. */
  over: z.boolean(),
  /** Rollouts that this request ended. */
  cancelled: z.int(),
});
export type PartReply = z.infer<typeof PartReply>;

const Count = z.int().min(0).max(1_000_000);
export const SetQuota = z.strictObject({
  project: z.string().trim().min(1).max(100),
  resource: z.enum(resources),
  quota: Count.nullable().describe("Leases that all runs of the project may hold together; null = no quota"),
});
export const SetPool = z.strictObject({
  resource: z.enum(resources),
  size: Count.optional().describe("Leases in all; never fewer than are held now"),
  evaluationReserve: Count.optional().describe("Of them, leases that only evaluation rollouts may take"),
});
export const Quotas = z.object({
  quotas: z.array(z.object({ project: z.string(), resource: z.enum(resources), quota: z.int() })),
  pools: z.array(z.object({ resource: z.enum(resources), size: z.int(), used: z.int(), evaluationReserve: z.int() })),
});
export type Quotas = z.infer<typeof Quotas>;
