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
import { makeSafeOutput } from "./make-safe-output.ts";
import { firstPrompt, observationTokens } from "./render-conversation.ts";

export interface DemonstrationFormat {
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  readonly tools: readonly ToolSpec[];
  readonly agent: Pick<RunConfig["agent"], "describeTools" | "maxOutputBytes">;
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
): number[] {
  const [end] = tokenizer.stopTokens;
  if (end === undefined) throw new RangeError("the tokenizer has no end token");
  return [...tokenizer.encode(dialect.renderCalls(calls)), end];
}

export function demonstrationTokens(demonstration: Demonstration, format: DemonstrationFormat): DemonstrationTokens {
  const { tokenizer, dialect, tools, agent } = format;
  const tokens: number[] = [];
  const mask: number[] = [];
  const push = (part: readonly number[], kind: 0 | 1) => {
    for (const token of part) {
      tokens.push(token);
      mask.push(kind);
    }
  };
  push(
    firstPrompt(tokenizer, { messages: demonstration.messages, tools, dialect, describeTools: agent.describeTools }),
    0,
  );
  for (const turn of demonstration.turns) {
    push(callTokens(format, turn.calls), 1);
    const results = turn.outputs.map((output, index): ChatMessage => {
      const { name = "", arguments: args = {} } = turn.calls[index] ?? {};
      const call = { index, name, arguments: args, raw: "" };
      return { role: "tool", content: dialect.renderResult(call, makeSafeOutput(output, agent.maxOutputBytes)) };
    });
    if (results.length > 0) push(observationTokens(tokenizer, results), 0);
  }
  return { tokens, mask };
}

/** One cross_entropy row, shifted by one: weights are the mask of the targets; its other columns are not read. */
export function demonstrationDatum(demonstration: Demonstration, format: DemonstrationFormat): TrainingDatum {
  const { tokens, mask } = demonstrationTokens(demonstration, format);
  const zeros = mask.slice(1).map(() => 0);
  return {
    inputs: tokens.slice(0, -1),
    targets: tokens.slice(1),
    weights: mask.slice(1),
    logprobs: zeros,
    advantages: zeros,
  };
}
