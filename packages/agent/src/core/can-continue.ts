import { resultsInOrder, type Trajectory } from "./trajectory.ts";

/**
 * May another worker go on from the last committed turn? Calls of a turn run one after the other, so only the first one
 * without a result can have been under way: of the newest turn, and of each turn whose sub-agent took it. It may run again
 * only when its tool says that twice does no harm.
 * @param harmless by tool name; a name that is no tool never reaches one and counts as harmless, a call that a sub-agent does
 *   is gone on with and counts too
 */
export function canContinue(trajectory: Trajectory, harmless: (name: string) => boolean): boolean {
  return trajectory.turns.every((turn) => {
    const call = turn.calls[resultsInOrder(turn).indexOf(null)];
    return call === undefined || harmless(call.name);
  });
}
