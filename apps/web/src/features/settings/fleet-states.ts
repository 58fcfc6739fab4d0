/** Hosts and GPU workers of the fleet in words: what a worker is called, and of each state its shape, colour and meaning. */
import type { FleetHostInfo, FleetWorkerInfo } from "@rolldeck/contracts/api/fleet";
import type { ChipTone } from "../../design/chip.tsx";
import type { MarkShape } from "../../design/mark.tsx";
import { formatCount } from "../../format/numbers.ts";

/** @example sampler 2 */
export const workerName = ({ role, replica }: Pick<FleetWorkerInfo, "role" | "replica">): string =>
  role === "sampler" ? `sampler ${formatCount(replica + 1)}` : role;

export interface StateLook {
  readonly tone: ChipTone;
  readonly shape: MarkShape;
  readonly meaning: string;
}

export const hostLooks: Record<FleetHostInfo["state"], StateLook> = {
  unseen: { tone: "neutral", shape: "ring", meaning: "Registered; it has not answered yet" },
  ready: { tone: "done", shape: "disc", meaning: "It answers and takes workers" },
  draining: { tone: "paused", shape: "bars", meaning: "What is there stays until its run is over; nothing new comes" },
  lost: { tone: "failed", shape: "triangle", meaning: "It does not answer; its devices are given to nobody" },
};

export const workerLooks: Record<FleetWorkerInfo["state"], StateLook> = {
  queued: { tone: "neutral", shape: "ring", meaning: "It waits for devices" },
  starting: { tone: "running", shape: "half", meaning: "It has its devices, and starts" },
  ready: { tone: "done", shape: "disc", meaning: "It answers" },
  lost: {
    tone: "paused",
    shape: "bars",
    meaning: "It does not answer; it keeps its devices until it is known to be gone",
  },
  stopping: { tone: "paused", shape: "bars", meaning: "It is being ended; then its devices are free" },
  stopped: { tone: "neutral", shape: "square", meaning: "Its run needs it no more" },
  refused: { tone: "failed", shape: "triangle", meaning: "No host can give what it needs" },
  failed: { tone: "failed", shape: "triangle", meaning: "It failed too often and is not started again" },
};
