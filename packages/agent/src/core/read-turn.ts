/** A sampled turn as calls, or as what the model must be told about it, with notes on what people should know. */
import type { ParsedTurn, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { CallPolicy } from "@rolldeck/contracts/ports/task";
import type { JsonObject, ToolCall, TurnNote, TurnRecord } from "@rolldeck/contracts/segments";
import { checkArguments } from "./check-arguments.ts";
import { headWithin } from "./cut-text.ts";
import { callsLeftOut, cutTurn, malformedCall, noCall, otherFormat, tooManyCalls } from "./feedback.ts";
import { otherDialect } from "./other-dialect.ts";
import type { RolloutSpec } from "./rollout.ts";
import { turnText } from "./turn-text.ts";

/** `parseError` is the message to the model; null when every call could be read. */
type ReadTurn = Pick<TurnRecord, "calls" | "parseError" | "notes">;

/**
 * Without tools the text is the answer. A cut turn is not read: a call without its end is not a call.
 * @param tools of the agent that took the turn
 * @param dialectNoted the mismatch of dialects has been said on this rollout
 */
export function readTurn(
  spec: RolloutSpec,
  tools: readonly ToolSpec[],
  result: SampleResult,
  dialectNoted: boolean,
): ReadTurn {
  const { notes, ...turn } = readWhole(spec, tools, result, dialectNoted);
  return { ...turn, notes: boundNotes(notes) };
}

/** As `TurnNote` has it; longer ones could be stored, and never read again. */
const maxNoteLength = 500;
/** Repairs and coercions that are told of one turn; the others are counted. */
const maxMended = 20;

/** Notes are for people, and a model that writes thousands of calls may give cause for thousands. */
function boundNotes(notes: readonly TurnNote[]): TurnNote[] {
  const isMended = ({ kind }: TurnNote) => kind === "repair" || kind === "coercion";
  const left = new Set(notes.filter(isMended).slice(maxMended));
  const kept = notes.filter((note) => !left.has(note));
  const more: TurnNote[] = left.size === 0 ? [] : [{ kind: "repair", message: `and ${left.size} more` }];
  return [...kept, ...more].map(({ kind, message }) => ({ kind, message: headWithin(message, maxNoteLength) }));
}

function readWhole(
  spec: RolloutSpec,
  tools: readonly ToolSpec[],
  result: SampleResult,
  dialectNoted: boolean,
): ReadTurn {
  const given = result.notes ?? [];
  if (result.stopReason === "length") return readCutTurn(spec, result);
  if (tools.length === 0) return { calls: [], parseError: null, notes: given };
  const text = turnText(spec.tokenizer, spec.dialect, result.tokens);
  const parsed = spec.dialect.parse(text, tools);
  const policy = spec.agent.callPolicy ?? spec.defaults?.callPolicy ?? "all";
  const chosen = chooseCalls(parsed.calls, policy, spec.agent.maxCallsPerTurn);
  const other = parsed.calls.length === 0 ? otherDialect(text, spec.dialect) : null;
  return {
    calls: chosen.calls,
    parseError: chosen.refusal ?? messageFor(spec, tools, parsed, other),
    notes: [
      ...given,
      ...parsed.repairs.map((message): TurnNote => ({ kind: "repair", message })),
      ...chosen.calls.flatMap((call) => coercionNotes(call, tools)),
      ...chosen.notes,
      ...(other !== null && !dialectNoted ? [mismatch(spec, other)] : []),
    ],
  };
}

const mismatch = ({ dialect }: RolloutSpec, other: string): TurnNote => ({
  kind: "dialect",
  message: `the text looks like ${other} calls; this run reads ${dialect.name}`,
});

function readCutTurn(spec: RolloutSpec, { tokens, notes = [] }: SampleResult): ReadTurn {
  const cut: TurnNote = { kind: "truncated", message: `cut after ${tokens.length} tokens, before its end token` };
  const told = spec.agent.onLength === "tell";
  return {
    calls: [],
    parseError: told ? cutTurn(tokens.length, isThinking(spec, tokens)) : null,
    notes: notes.some(({ kind }) => kind === "truncated") ? notes : [...notes, cut],
  };
}

function isThinking(spec: RolloutSpec, tokens: readonly number[]): boolean {
  const { reasoning, content } = spec.dialect.parse(turnText(spec.tokenizer, spec.dialect, tokens), []);
  return reasoning.trim() !== "" && content.trim() === "";
}

interface ChosenCalls {
  readonly calls: readonly ToolCall[];
  /** What the model is told instead of a result. */
  readonly refusal: string | null;
  readonly notes: readonly TurnNote[];
}

function chooseCalls(calls: readonly ToolCall[], policy: CallPolicy, most: number): ChosenCalls {
  // All results of a turn are read before anything else happens: their number has to have an end.
  if (policy === "all" && calls.length > most) {
    const message = `${calls.length} calls in one turn, the first ${most} were run`;
    return {
      calls: calls.slice(0, most),
      refusal: callsLeftOut(calls.length, most),
      notes: [{ kind: "calls", message }],
    };
  }
  const [first, ...others] = calls;
  if (policy === "all" || first === undefined || others.length === 0) return { calls, refusal: null, notes: [] };
  const shown = others.slice(0, 5).map(({ name }) => JSON.stringify(name.slice(0, 64)));
  const names = [...shown, ...(others.length > shown.length ? [`${others.length - shown.length} more`] : [])].join(
    ", ",
  );
  if (policy === "first") {
    return {
      calls: [first],
      refusal: null,
      notes: [{ kind: "calls", message: `first call only, left out: ${names}` }],
    };
  }
  const message = `${calls.length} calls in one turn, none was run: this task takes one`;
  return { calls: [], refusal: tooManyCalls(calls.length), notes: [{ kind: "calls", message }] };
}

/** The turn is committed before its calls run, so what the check will read otherwise is said here. */
function coercionNotes(call: ToolCall, tools: readonly ToolSpec[]): TurnNote[] {
  const tool = tools.find(({ name }) => name === call.name);
  const checked = tool === undefined ? null : checkArguments(call.arguments, tool.parameters);
  if (!checked?.ok) return [];
  return checked.coercions.map((coercion) => ({ kind: "coercion", message: `${call.name}: ${coercion}` }));
}

function messageFor(
  spec: RolloutSpec,
  tools: readonly ToolSpec[],
  { calls, error }: ParsedTurn,
  other: string | null,
): string | null {
  if (other !== null) return otherFormat(spec.dialect.name, exampleCall(spec, tools));
  if (error !== null) return malformedCall(error, exampleCall(spec, tools));
  if (calls.length > 0) return null;
  return noCall(tools, exampleCall(spec, tools));
}

/** What the policy answered in a run without tools. */
export const readAnswer = (spec: RolloutSpec, tokens: readonly number[]): string =>
  spec.dialect.parse(turnText(spec.tokenizer, spec.dialect, tokens), []).content;

/** A call of the first tool with its required arguments, as the dialect writes it. */
export function exampleCall({ dialect }: Pick<RolloutSpec, "dialect">, tools: readonly ToolSpec[]): string {
  const [tool] = tools;
  if (tool === undefined) return "";
  const { required } = tool.parameters;
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  const args: JsonObject = Object.fromEntries(names.map((name) => [name, "..."]));
  const call = { name: tool.name, arguments: args };
  return dialect.showCall?.(call) ?? dialect.renderCalls([call]);
}
