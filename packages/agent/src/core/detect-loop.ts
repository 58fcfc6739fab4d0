/** Loop rules: the policy repeats itself and the world answers alike. Reads committed turns only, so a resumed rollout agrees. */
import { type CommittedTurn, resultsInOrder } from "./trajectory.ts";

const identicalTurns = 4;
const identicalErrors = 3;

/** 4 turns with the same calls and the same observations, or 3 with the same calls that all ended in errors. */
export function isLooping(turns: readonly CommittedTurn[]): boolean {
  return repeats(turns, identicalTurns, observed) || repeats(turns, identicalErrors, failed);
}

function repeats(
  turns: readonly CommittedTurn[],
  count: number,
  sign: (turn: CommittedTurn) => string | null,
): boolean {
  if (turns.length < count) return false;
  const signs = turns.slice(-count).map(sign);
  return signs[0] !== null && signs.every((other) => other === signs[0]);
}

/** Key order in arguments is not a difference the tool sees. */
const called = (turn: CommittedTurn): unknown =>
  turn.calls.map(({ name, arguments: args }) => [name, Object.entries(args).sort(([a], [b]) => (a < b ? -1 : 1))]);

function observed(turn: CommittedTurn): string | null {
  if (turn.calls.length === 0) return null;
  const observation = resultsInOrder(turn).map((result) => [result?.output, result?.error?.code]);
  return JSON.stringify([called(turn), observation, turn.parseError]);
}

function failed(turn: CommittedTurn): string | null {
  const errors = resultsInOrder(turn).map((result) => result?.error?.code ?? null);
  return errors.length === 0 || errors.includes(null) ? null : JSON.stringify([called(turn), errors]);
}
