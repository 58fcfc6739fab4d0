/** Sandboxes of rollouts: where each stands, what it took, how long it stays. `/api/v1/rollouts/{id}/sandboxes` and more. */
import { z } from "zod";
import { sandboxPurposes } from "../events.ts";
import { sandboxIdPattern } from "../ports/sandbox.ts";
import { RolloutId, RunId } from "./runs.ts";

/** opening → open → closed | lost, with kept between where it is to be looked into. */
export const sandboxStates = ["opening", "open", "kept", "closed", "lost"] as const;
export type SandboxState = (typeof sandboxStates)[number];

export const SandboxId = z
  .string()
  .regex(sandboxIdPattern, "a sandbox id is sbx_ and 20 lower-case letters and digits");

/** Reason of one that is held until it is known whether its rollout succeeded. Nobody's word: it is let go by itself. */
export const heldReason = "its agent is done; held until it is graded";

export const SandboxInfo = z.object({
  sandboxId: z.string(),
  runId: z.string(),
  rolloutId: z.string(),
  /** Of the rollout: what it works on, and which of its group's samples it is, from 0. */
  instanceId: z.string(),
  sample: z.int(),
  attempt: z.int(),
  purpose: z.enum(sandboxPurposes),
  runtime: z.string(),
  /** For people: an image name, or what is built; null without one. */
  image: z.string().nullable(),
  network: z.string(),
  state: z.enum(sandboxStates),
  /** Grading happens in the agent's own. */
  inPlace: z.boolean(),
  /** Of an environment that its run keeps: rollouts that worked in it, each after a reset but the first; null of others. */
  uses: z.int().nullable(),
  /** An environment that waits for its next rollout, since when; `rolloutId` names the last one. */
  idleSince: z.string().nullable(),
  reason: z.string().nullable(),
  /** Of one that is open: how long it is kept from now on, once its stage is over with it. */
  keepUntil: z.string().nullable(),
  /** Milliseconds by phase: open, setUp, run, collect, verify, close. */
  phases: z.record(z.string(), z.number()),
  createdAt: z.string(),
  openedAt: z.string().nullable(),
  closedAt: z.string().nullable(),
});
export type SandboxInfo = z.infer<typeof SandboxInfo>;

/** A shell can be opened in one that is there: in use, or kept. */
export const isThere = ({ state }: Pick<SandboxInfo, "state">): boolean => state === "open" || state === "kept";

export const ListRolloutSandboxes = z.strictObject({ rolloutId: RolloutId });
export const RolloutSandboxes = z.object({
  rolloutId: z.string(),
  /** Of all attempts, newest first; at most 100. */
  sandboxes: z.array(SandboxInfo),
  more: z.boolean(),
});

export const ListRunSandboxes = z.strictObject({
  runId: RunId,
  /** Those that are there or coming, or all. */
  which: z.enum(["live", "all"]).default("live"),
  limit: z.int().min(1).max(500).default(100),
});
export const RunSandboxes = z.object({
  runId: z.string(),
  counts: z.object({
    opening: z.int(),
    open: z.int(),
    kept: z.int(),
    closed: z.int(),
    lost: z.int(),
  } satisfies Record<SandboxState, z.ZodInt>),
  /** Newest first. */
  sandboxes: z.array(SandboxInfo),
  more: z.boolean(),
});

export const KeepSandbox = z.strictObject({
  sandboxId: SandboxId,
  /** From now on. */
  minutes: z.int().min(1).max(1440).default(30),
});
export const CloseSandbox = z.strictObject({ sandboxId: SandboxId });
