/**
 * One holder of a run's model sends training requests at a time: the prepare job, or the update job of one step. Its request
 * numbers are committed before they are sent; after a takeover they go on from what the server has really seen.
 */
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Pool } from "@rolldeck/db/connect";
import { nextTrainerSeq, resetTrainerSeq, type TrainerHolder } from "@rolldeck/db/training/trainer-seq";

export interface TrainerSeat {
  /** Next request number, committed. @throws FencedError; the signal's reason */
  nextSeq(): Promise<number>;
  /** Numbers go on after the server's last. @throws FencedError */
  resetTo(lastSeqId: number): Promise<void>;
  /** The call's result unless the claim ends first. */
  during<T>(call: Promise<T>): Promise<T>;
}

export function trainerSeat(pool: Pool, holder: TrainerHolder, signal: AbortSignal): TrainerSeat {
  return {
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
