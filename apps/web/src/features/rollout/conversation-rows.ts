/** What the centre pane lists: whole turns as text, or turn heads and chunks of tokens. Pure. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";

/** Tokens in one row of the token view: few enough that a row stays cheap to lay out. */
const chunkTokens = 240;

export type ConversationRow =
  | { readonly kind: "turn"; readonly key: string; readonly turn: TurnView }
  | { readonly kind: "head"; readonly key: string; readonly turn: TurnView }
  | {
      readonly kind: "chunk";
      readonly key: string;
      readonly turn: number;
      readonly start: number;
      readonly end: number;
    }
  | { readonly kind: "reset"; readonly key: string; readonly turn: TurnView }
  | { readonly kind: "after"; readonly key: string; readonly start: number; readonly end: number };

function chunks(turn: number, start: number, end: number): ConversationRow[] {
  const rows: ConversationRow[] = [];
  for (let from = start; from < end; from += chunkTokens)
    rows.push({ kind: "chunk", key: `c${from}`, turn, start: from, end: Math.min(end, from + chunkTokens) });
  return rows;
}

export const textRows = (turns: readonly TurnView[]): ConversationRow[] =>
  turns.map((turn) => ({ kind: "turn", key: `t${turn.turn}`, turn }));

/** Every token once, in order: what came before a turn's own words is shown with that turn. */
export function tokenRows(turns: readonly TurnView[], total: number): ConversationRow[] {
  let at = 0;
  const made = turns.toSorted((a, b) => a.sampledRange.start - b.sampledRange.start);
  const rows = made.flatMap((turn): ConversationRow[] => {
    const { start, end } = turn.sampledRange;
    const own: ConversationRow[] = [
      { kind: "head", key: `h${turn.turn}`, turn },
      ...chunks(turn.turn, Math.min(at, start), start),
      ...chunks(turn.turn, start, end),
      ...(turn.contextChange ? [{ kind: "reset" as const, key: `r${turn.turn}`, turn }] : []),
    ];
    at = end;
    return own;
  });
  if (turns.length > 0 && at < total) {
    rows.push({ kind: "after", key: "after", start: at, end: total });
    rows.push(...chunks(made.at(-1)?.turn ?? 0, at, total));
  }
  return rows;
}

export const rowOfTurn = (rows: readonly ConversationRow[], turn: number): number =>
  rows.findIndex((row) => (row.kind === "turn" || row.kind === "head") && row.turn.turn === turn);

export const rowOfToken = (rows: readonly ConversationRow[], token: number): number =>
  rows.findIndex((row) => row.kind === "chunk" && token >= row.start && token < row.end);

/** The turn a token was sampled in, or the one whose prompt it came for; null beyond the last. */
export function turnOfToken(turns: readonly Pick<TurnView, "turn" | "sampledRange">[], token: number): number | null {
  const made = turns.toSorted((a, b) => a.sampledRange.start - b.sampledRange.start);
  return made.find(({ sampledRange }) => token < sampledRange.end)?.turn ?? null;
}

/** `120-160` or `120`, as in the URL; null when it is neither. End is included. */
export function parseTokenRange(text: string | null): { readonly start: number; readonly end: number } | null {
  const match = /^(\d{1,8})(?:-(\d{1,8}))?$/.exec(text ?? "");
  if (!match) return null;
  const start = Number(match[1]);
  const end = match[2] === undefined ? start : Number(match[2]);
  return start <= end ? { start, end } : { start: end, end: start };
}
export const formatTokenRange = (start: number, end: number): string =>
  start === end ? `${start}` : `${start}-${end}`;
