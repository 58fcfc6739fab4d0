/**
 * What a stage job writes. Every entry names (rollout, attempt, claim); it is written only while that claim is current and
 * the rollout is active, else the writer rejects it with FencedError and writes nothing of it.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import type { RolloutOutcome, Stage } from "@rolldeck/contracts/lifecycle";
import type { Segment, TurnRecord, TurnResults } from "@rolldeck/contracts/segments";

interface Claimed {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
}

/** One model call with its segments; its tool calls are stored as started. */
export interface TurnEntry extends Claimed {
  readonly kind: "turn";
  readonly turn: TurnRecord;
  readonly segments: readonly Segment[];
}

/** The tool calls of a turn ended; segments hold what the model will see of them. */
export interface ToolsEntry extends Claimed, TurnResults {
  readonly kind: "tools";
}

export interface NextStage {
  readonly move: "next-stage";
  readonly stage: Stage;
  readonly ending?: Ending;
  readonly reason?: string | null;
  readonly finalAnswer?: string | null;
}
export interface Settle {
  readonly move: "settle";
  readonly outcome: RolloutOutcome;
  readonly ending: Ending;
  readonly reason: string | null;
  readonly reward: number | null;
  readonly rewardParts: Readonly<Record<string, number | string>>;
  readonly success: boolean | null;
  /** What people should look at; absent = nothing. At most 16 of 100 characters are kept. */
  readonly flags?: readonly string[];
}
/**
 * The worker gives the stage back. `none`: a graceful hand-back (queued again with its lease past; another worker continues
 * the same attempt). Otherwise the failure is counted and the rollout waits with its failed ending until the planner decides.
 */
export interface Release {
  readonly move: "release";
  readonly reason: string;
  readonly failure: "none" | "infrastructure" | "evaluate";
  readonly ending?: Ending;
  /** Back-off from now, milliseconds. */
  readonly notBeforeMs?: number;
}
/** The rollout leaves its stage; `stage` is the one it leaves. */
export interface EdgeEntry extends Claimed {
  readonly kind: "edge";
  readonly stage: Stage;
  readonly to: NextStage | Settle | Release;
}

export type HotEntry = TurnEntry | ToolsEntry | EdgeEntry;
