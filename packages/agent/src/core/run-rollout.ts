/**
 * A rollout: its agent's turn loop, and those of the sub-agents it calls.
 *
 * Invariants:
 * - a turn is committed before any of its calls runs; every call's result before the next call or sample;
 * - tokens in, tokens out: the next prompt is the last one + the sampled ids + the encoded answer, nothing re-encoded; where a
 *   tool changed the context it is the ranges that were committed with that turn's last results;
 * - what to do next depends only on what is committed, so another worker goes on exactly where this one stopped: committed
 *   turns are never sampled again, ended calls never run again;
 * - a turn's work grows with what the turn adds, never with what came before (a change of context apart);
 * - the ending is decided from facts (a tool's word, limits, counts), never from the model's text.
 */
import { History } from "./history.ts";
import type { RolloutEnd, RolloutPorts, RolloutSpec } from "./rollout.ts";
import { runThread } from "./run-thread.ts";
import { Thread } from "./thread.ts";
import type { CommittedTurn, Trajectory } from "./trajectory.ts";

export { canContinue } from "./can-continue.ts";
export type { OutputArtifact, RolloutEnd, RolloutPorts, RolloutSpec } from "./rollout.ts";

/**
 * @param resume what an earlier worker committed of this attempt, or null
 * @throws BoundaryError when infrastructure fails; whatever the ports throw otherwise (FencedError), and the signal's reason
 *   when it aborts, as they came
 */
export async function runRollout(
  spec: RolloutSpec,
  resume: Trajectory | null,
  ports: RolloutPorts,
  signal: AbortSignal,
): Promise<RolloutEnd> {
  const history = new History(resume);
  const { messages, tools, maxTurns } = spec;
  const own = new Thread({ id: "", depth: 0, messages, tools, maxTurns }, history);
  const end = await runThread({ spec, ports, signal, history, stored: byThread(resume) }, own);
  return { ...end, turns: history.turns, toolCalls: history.endedCalls() };
}

function byThread(resume: Trajectory | null): Map<string, CommittedTurn[]> {
  const threads = new Map<string, CommittedTurn[]>();
  for (const turn of resume?.turns ?? []) {
    const own = threads.get(turn.thread);
    if (own === undefined) threads.set(turn.thread, [turn]);
    else own.push(turn);
  }
  return threads;
}
