import { resultsInOrder, type Trajectory } from "./trajectory.ts";

/**
 * May another worker go on from the last committed turn? Calls run one after the other, so at most the first call without
 * a result can have been under way; it may run again only when its tool says that twice does no harm.
 * @param idempotent by tool name; a name that is no tool never reaches one and may count as harmless
 */
export function canContinue(trajectory: Trajectory, idempotent: (name: string) => boolean): boolean {
  const last = trajectory.turns.at(-1);
  if (last === undefined) return true;
  const open = resultsInOrder(last).indexOf(null);
  const call = open === -1 ? undefined : last.calls[open];
  return call === undefined || idempotent(call.name);
}
