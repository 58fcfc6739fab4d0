/**
 * Supervised rows from demonstrations. Invariant: a demonstration's tokens are those that a rollout would hold in which the
 * policy sampled these calls: same first prompt, same observations, same rendering path. Weights are 1 exactly on the
 * assistant's tokens, the end token included.
 */
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Demonstration } from "@rolldeck/contracts/ports/task";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { toolCallId } from "./answer-turn.ts";

import { limitOutput } from "./limit-output.ts";
import { firstPrompt, observationTokens } from "./render-conversation.ts";
import { calledTokens } from "./template-tools.ts";

export interface DemonstrationFormat {
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  readonly tools: readonly ToolSpec[];
  readonly agent: Pick<RunConfig["agent"], "describeTools" | "maxOutputBytes" | "maxOutputTokens">;
}

/** Tokens with the mask of what the assistant wrote. */
export interface DemonstrationTokens {
  readonly tokens: readonly number[];
  /** 1 on assistant tokens, same length as `tokens`. */
  readonly mask: readonly number[];
}

/** What the policy would have sampled for these calls. @throws RangeError when the tokenizer has no end token */
export function callTokens(
  { tokenizer, dialect }: DemonstrationFormat,
  calls: Demonstration["turns"][number]["calls"],
  turn = 0,
): number[] {
  const named = calls.map((call, index) => ({ id: toolCallId(turn, index), ...call }));
  const written = calls.length === 0 ? null : calledTokens(tokenizer, dialect, named);
  if (written !== null) return written;
  const [end] = tokenizer.stopTokens;
  if (end === undefined) throw new RangeError("the tokenizer has no end token");
  return [...tokenizer.encode(dialect.renderCalls(calls)), end];
}

/**
 * One row for each context: where a turn's tools restart it, the row ends with that turn and the next begins with the new
 * messages. What the tools answered there is seen by nobody.
 */
export function demonstrationRows(demonstration: Demonstration, format: DemonstrationFormat): DemonstrationTokens[] {
  const rows: Row[] = [openRow(demonstration.messages, format)];
  for (const [place, turn] of demonstration.turns.entries()) {
    const row = rows.at(-1);
    if (row === undefined) break;
    append(row, callTokens(format, turn.calls, place), 1);
    if (turn.restart !== undefined) rows.push(openRow(turn.restart, format));
    else if (turn.outputs.length > 0) append(row, resultTokens(turn, place, format), 0);
  }
  return rows;
}

interface Row extends DemonstrationTokens {
  readonly tokens: number[];
  readonly mask: number[];
}

function openRow(messages: Demonstration["messages"], { tokenizer, dialect, tools, agent }: DemonstrationFormat): Row {
  const tokens = firstPrompt(tokenizer, { messages, tools, dialect, describeTools: agent.describeTools });
  return { tokens, mask: tokens.map(() => 0) };
}

function append(row: Row, part: readonly number[], kind: 0 | 1): void {
  for (const token of part) {
    row.tokens.push(token);
    row.mask.push(kind);
  }
}

function resultTokens(
  turn: Demonstration["turns"][number],
  place: number,
  { tokenizer, dialect, agent }: DemonstrationFormat,
): number[] {
  const results = turn.outputs.map((output, index): ChatMessage => {
    const { name = "", arguments: args = {} } = turn.calls[index] ?? {};
    const call = { index, name, arguments: args, raw: "" };
    const content = dialect.renderResult(call, limitOutput({ agent, tokenizer }, output).text);
    if (dialect.resultRole === "user") return { role: "user", content };
    return { role: "tool", content, toolCallId: toolCallId(place, index), name };
  });
  return observationTokens(tokenizer, results);
}

/** cross_entropy rows, shifted by one: weights are the mask of the targets; the other columns are not read. */
export function demonstrationDatums(demonstration: Demonstration, format: DemonstrationFormat): TrainingDatum[] {
  return demonstrationRows(demonstration, format).map(({ tokens, mask }) => {
    const zeros = mask.slice(1).map(() => 0);
    return {
      inputs: tokens.slice(0, -1),
      targets: tokens.slice(1),
      weights: mask.slice(1),
      logprobs: zeros,
      advantages: zeros,
    };
  });
}
