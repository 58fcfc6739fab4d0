import type { BackendInfo } from "@rolldeck/contracts/ports/backend";
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import type { WorkerContext } from "../worker-context.ts";
import type { BootProgress } from "./boot-progress.ts";
import type { TrainerSeat } from "./trainer-holder.ts";

/** One try of a prepare job on one boot of the model server. */
export interface PrepareScene {
  readonly context: WorkerContext;
  readonly claimed: ClaimedPrepare;
  readonly info: BackendInfo;
  readonly boot: BootProgress;
  readonly seat: TrainerSeat;
  readonly signal: AbortSignal;
}
