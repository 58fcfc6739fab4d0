/** What a worker's process is told of its role: those that do not update leave the run's files as they are. */
import type { WorkerRole } from "@rolldeck/contracts/fleet";

export const roleFlags = (role: WorkerRole): string[] => (role === "sampler" || role === "reader" ? ["--sampler"] : []);
