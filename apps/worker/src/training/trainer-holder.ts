/**
 * One holder of a run's model sends training requests at a time: the prepare job, or the update job of one step. Its request
 * numbers are committed before they are sent; after a takeover they go on from what the server has really seen.
 */
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Pool } from "@rolldeck/db/connect";
import type { TrainerHolder } from "@rolldeck/db/training/model-holder";
import { nextTrainerSeq, resetTrainerSeq } from "@rolldeck/db/training/trainer-seq";

export interface TrainerSeat {
  /** Whose it is: what it writes carries that claim. */
  readonly holder: TrainerHolder;
  /** Next request number, committed. @throws FencedError; the signal's reason */
  nextSeq(): Promise<number>;
  /** Numbers go on after the server's last. @throws FencedError */
  resetTo(lastSeqId: number): Promise<void>;
  /** The call's result unless the claim ends first. */
  during<T>(call: Promise<T>): Promise<T>;
}

export function trainerSeat(pool: Pool, holder: TrainerHolder, signal: AbortSignal): TrainerSeat {
  return {
    holder,
    nextSeq: async () => {
      signal.throwIfAborted();
      const seqId = await nextTrainerSeq(pool, holder);
      signal.throwIfAborted();
      return seqId;
    },
    resetTo: (lastSeqId) => resetTrainerSeq(pool, holder, lastSeqId),
    during: (call) => orAborted(call, signal),
  };
}
