/** How long a model server that someone else runs may be away. The one that this server supervises is waited for without end. */
import type { RunConfig } from "./run-config.ts";

/** Before it has answered the run once: most likely its address is wrong, or nobody started it. */
const neverServedMinutes = 5;
/** Afterwards: a restart, with the download of its weights, must not cost a run what it has. */
const servedMinutes = 60;

/** @param served whether a version of the run's model has served @returns minutes after which the run fails */
export const awayLimitMinutes = ({ awayMinutes }: RunConfig["backend"], served: boolean): number =>
  awayMinutes ?? (served ? servedMinutes : neverServedMinutes);
