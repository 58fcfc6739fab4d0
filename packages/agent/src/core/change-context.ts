/**
 * The next prompt after a tool changed the agent's context. Invariants: what stays is referred to, token for token, and only
 * what is new is stored; the result depends on what is committed alone.
 */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { ContextChange } from "@rolldeck/contracts/ports/tool";
import type { Segment, TokenRange } from "@rolldeck/contracts/segments";
import { toolCallId } from "./answer-turn.ts";
import type { Piece } from "./history.ts";
import { firstPrompt, observationTokens } from "./render-conversation.ts";
import type { Rollout } from "./rollout.ts";
import type { Thread } from "./thread.ts";
import { joinRanges } from "./trajectory.ts";

export interface NextContext {
  /** New segments, in order. */
  readonly segments: readonly Segment[];
  /** All of the next prompt. */
  readonly ranges: readonly TokenRange[];
}

/** @param through what the next prompt would be without the change: the old one, the sampled turn and its answer */
export function changeContext(
  rollout: Rollout,
  thread: Thread,
  change: ContextChange,
  through: readonly TokenRange[],
): NextContext {
  if (change.kind === "drop-observations") return dropObservations(rollout, change.keep, through);
  if (change.kind === "restart") return begin(rollout, thread, openingTokens(rollout, thread, change.messages));
  const beginning = begin(rollout, thread, summaryTokens(rollout, thread, change.text));
  const kept = turnsOf(rollout.history.pieces(through)).slice(1);
  const newest = change.keepTurns < 1 ? [] : kept.slice(-change.keepTurns);
  return { segments: beginning.segments, ranges: joinRanges([...beginning.ranges, ...newest.flat()]) };
}

function openingTokens({ spec }: Rollout, { plan }: Thread, messages: readonly ChatMessage[]): number[] {
  const { tokenizer, dialect, agent } = spec;
  return firstPrompt(tokenizer, { messages, tools: plan.tools, dialect, describeTools: agent.describeTools });
}

/** The opening and the summary as the user's words. */
const summaryTokens = (rollout: Rollout, thread: Thread, text: string): number[] =>
  openingTokens(rollout, thread, [...thread.plan.messages, { role: "user", content: text }]);

/** A fresh beginning, which shares its first tokens with the agent's opening. */
function begin({ history }: Rollout, thread: Thread, tokens: readonly number[]): NextContext {
  const opening = history.read(thread.opening);
  const differs = tokens.findIndex((token, place) => token !== opening[place]);
  const shared = differs === -1 ? tokens.length : differs;
  const segments = shared < tokens.length ? [history.append("template", tokens.slice(shared))] : [];
  const ranges = joinRanges([...firstOf(thread.opening, shared), ...history.rangesOf(segments)]);
  return { segments, ranges };
}

/** The ranges of the first tokens. */
function firstOf(ranges: readonly TokenRange[], tokens: number): TokenRange[] {
  let left = tokens;
  return ranges.flatMap(({ start, end }) => {
    const taken = Math.min(left, end - start);
    left -= taken;
    return taken > 0 ? [{ start, end: start + taken }] : [];
  });
}

/** The opening, then each turn: what was sampled and what followed it. */
function turnsOf(pieces: readonly Piece[]): Piece[][] {
  const turns: Piece[][] = [[]];
  for (const piece of pieces) {
    if (piece.origin === "sampled") turns.push([]);
    turns.at(-1)?.push(piece);
  }
  return turns;
}

const dropped = "[an older result stood here; it was dropped to save room]";

function dropObservations({ spec, history }: Rollout, keep: number, through: readonly TokenRange[]): NextContext {
  const { dialect, tokenizer } = spec;
  const content = dialect.renderResult({ index: 0, name: "dropped", arguments: {}, raw: "" }, dropped);
  const message = dialect.resultRole === "tool" ? { toolCallId: toolCallId(0, 0), name: "dropped" } : {};
  const tokens = observationTokens(tokenizer, [{ role: dialect.resultRole, content, ...message }]);
  const known = history.find("observation", tokens);
  const [opening = [], ...turns] = turnsOf(history.pieces(through));
  const observed = turns.filter((turn) => holdsObservation(turn, known));
  const old = new Set(keep < 1 ? observed : observed.slice(0, -keep));
  if (old.size === 0) return { segments: [], ranges: through };
  const segments = known === null ? [history.append("observation", tokens)] : [];
  const placeholder = known ?? history.rangesOf(segments)[0] ?? { start: 0, end: 0 };
  const shortened = turns.map((turn) => (old.has(turn) ? [...turn.slice(0, 1), placeholder] : turn));
  return { segments, ranges: joinRanges([...opening, ...shortened.flat()]) };
}

/** A turn's results; those that gave way already don't count. */
const holdsObservation = (turn: readonly Piece[], placeholder: TokenRange | null): boolean =>
  turn.some(({ origin, start }) => origin === "observation" && start !== placeholder?.start);
