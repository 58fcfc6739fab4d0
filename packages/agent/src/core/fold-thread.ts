/**
 * A thread brought to where an earlier worker left it, from what that worker committed. Invariant: the same state, in the
 * same order of steps, as the thread that was lost.
 */
import type { TokenRange } from "@rolldeck/contracts/segments";
import { hintsFor, messagesOf } from "./answer-turn.ts";
import { assistantMessage } from "./assistant-message.ts";
import type { Rollout } from "./rollout.ts";
import type { Thread } from "./thread.ts";
import { type CommittedTurn, continues, joinRanges, rangesAfter, rangesLength } from "./trajectory.ts";

export function foldThread(rollout: Rollout, thread: Thread): void {
  const turns = rollout.stored.get(thread.plan.id) ?? [];
  rollout.stored.delete(thread.plan.id);
  turns.forEach((turn, place) => {
    foldTurn(rollout, thread, turn, turns[place + 1] ?? null);
  });
}

function foldTurn(rollout: Rollout, thread: Thread, turn: CommittedTurn, next: CommittedTurn | null): void {
  const { history } = rollout;
  const sampled = history.rangeOf(turn.sampledSegment);
  if (thread.turns === 0) thread.opening = turn.promptRanges;
  thread.addTurn(turn, history.wordsOf(turn));
  thread.transcript.add(() => [assistantMessage(rollout, turn)]);
  thread.addResults(turn.results.filter((result) => result !== null));
  const through = joinRanges([...turn.promptRanges, sampled]);
  const ranges = nextPrompt(rollout, turn, next, through);
  if (ranges !== null) foldAnswer(rollout, thread, through, ranges);
  // Only the newest turn's is needed; the prompt of an open turn ends with what was sampled.
  if (next === null) thread.setPrompt(ranges ?? through);
}

/** null: the turn is not answered yet. */
function nextPrompt(
  { history }: Rollout,
  turn: CommittedTurn,
  next: CommittedTurn | null,
  through: readonly TokenRange[],
): readonly TokenRange[] | null {
  if (turn.nextRanges !== null) return turn.nextRanges;
  if (next !== null) return next.promptRanges;
  // Turns of other threads after it: its sub-agent's, and it is still open.
  const newest = turn.turn === history.turns - 1;
  return newest && history.segments > turn.sampledSegment + 1
    ? joinRanges([...through, history.after(turn.sampledSegment)])
    : null;
}

function foldAnswer(
  { spec, history }: Rollout,
  thread: Thread,
  through: readonly TokenRange[],
  ranges: readonly TokenRange[],
): void {
  const changed = !continues(ranges, through);
  if (changed) thread.transcript.lose();
  else {
    const answer = history.pieces(rangesAfter(ranges, rangesLength(through)));
    const observed = rangesLength(answer.filter(({ origin }) => origin === "observation"));
    const hints = hintsFor(spec, thread, observed);
    const messages = messagesOf(spec, thread, hints);
    thread.transcript.add(() => messages);
  }
  thread.close(changed);
}
