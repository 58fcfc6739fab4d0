/**
 * The turn loop: sample, run the calls, observe, until the rollout ends.
 *
 * Invariants:
 * - a turn is committed before any of its calls runs; every call's result before the next call or sample;
 * - tokens in, tokens out: the next prompt is the last one + the sampled ids + the encoded observation, nothing re-encoded;
 * - what to do next depends only on what is committed, so another worker goes on exactly where this one stopped: committed
 *   turns are never sampled again, ended calls never run again;
 * - a turn whose calls all ended and that nothing follows finished the rollout; every other ended turn has an answer segment;
 * - the ending is decided here from facts (a tool's word, limits, counts), never from the model's text.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { Segment, ToolCall, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";
import { isLooping } from "./detect-loop.ts";
import { notRun } from "./feedback.ts";
import { History } from "./history.ts";
import { readAnswer, readTurn } from "./read-turn.ts";
import { firstPrompt, observationTokens } from "./render-conversation.ts";
import type { Rollout, RolloutEnd, RolloutPorts, RolloutSpec } from "./rollout.ts";
import { runCall } from "./run-call.ts";
import { takeSample } from "./take-sample.ts";
import { type CommittedTurn, resultsInOrder, type Trajectory } from "./trajectory.ts";

export { canContinue } from "./can-continue.ts";
export type { RolloutEnd, RolloutPorts, RolloutSpec } from "./rollout.ts";

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
  const rollout: Rollout = { spec, ports, signal, history: new History(resume) };
  for (;;) {
    signal.throwIfAborted();
    const end = (await finishTurn(rollout)) ?? (await takeTurn(rollout));
    if (end !== null) return end;
  }
}

/** Samples one turn and commits it; ends the rollout instead when the context has no room for a single token. */
async function takeTurn(rollout: Rollout): Promise<RolloutEnd | null> {
  const { spec, ports, history } = rollout;
  const opening = history.lastTurn === null && history.segments.length === 0;
  const segments: Segment[] = [];
  if (opening) {
    const prompt = firstPrompt(spec.tokenizer, { ...spec, describeTools: spec.agent.describeTools });
    segments.push(history.append("template", prompt));
  }
  const promptRanges = history.nextPromptRanges();
  const promptTokens = history.read(promptRanges);
  const room = spec.agent.maxContextTokens - promptTokens.length;
  if (room < 1) return endOf(rollout, "context_full", { reason: contextReason(spec, promptTokens.length) });
  const { result, sampleMs } = await takeSample(rollout, promptTokens, room);
  const { tokens, logprobs, policyVersion } = result;
  const sampled = history.append("sampled", tokens, { logprobs, policyVersion });
  segments.push(sampled);
  const turn: TurnRecord = {
    turn: history.turns.length,
    promptRanges,
    promptTokens: promptTokens.length,
    sampledSegment: sampled.index,
    sampledTokens: tokens.length,
    stopReason: result.stopReason,
    policyVersion,
    cacheHitTokens: result.cacheHitTokens,
    sampleMs,
    thread: "",
    notes: result.notes ?? [],
    nextRanges: null,
    // A cut turn is not read: a call without its end is not a call.
    ...(result.stopReason === "length" ? { calls: [], parseError: null } : readTurn(spec, tokens)),
  };
  await ports.commitTurn(turn, segments);
  history.addTurn(turn);
  return null;
}

/** Brings the last turn to its end: open calls run, the observation is committed. @returns the rollout's end, if this was it */
async function finishTurn(rollout: Rollout): Promise<RolloutEnd | null> {
  const { spec, history } = rollout;
  const turn = history.lastTurn;
  if (turn === null) return null;
  if (turn.stopReason === "length") return endOfCutTurn(rollout, turn);
  if (turn.calls.length === 0) return finishWithoutCall(rollout, turn);
  if (!history.answered) {
    const finish = await runOpenCalls(rollout);
    if (finish !== null) return endOf(rollout, "finish_tool", finish);
  }
  if (isLooping(history.turns))
    return endOf(rollout, "loop", { reason: "the same calls with the same results, again and again" });
  return history.turns.length >= spec.maxTurns ? endOf(rollout, "turn_limit") : null;
}

function endOfCutTurn(rollout: Rollout, turn: CommittedTurn): RolloutEnd {
  const { spec } = rollout;
  const used = turn.promptTokens + turn.sampledTokens;
  if (used >= spec.agent.maxContextTokens) return endOf(rollout, "context_full", { reason: contextReason(spec, used) });
  return endOf(rollout, "length", { reason: `turn ${turn.turn} was cut after ${turn.sampledTokens} tokens` });
}

async function finishWithoutCall(rollout: Rollout, turn: CommittedTurn): Promise<RolloutEnd | null> {
  const { spec, ports, history } = rollout;
  if (spec.tools.length === 0)
    return endOf(rollout, "answer", { finalAnswer: readAnswer(spec, history.sampledTokens(turn)) });
  const tries = history.turns.length - 1 - history.turns.findLastIndex((other) => other.calls.length > 0);
  if (tries > spec.agent.parseRetries)
    return endOf(rollout, "no_call", { reason: `${tries} turns without a usable call` });
  if (history.turns.length >= spec.maxTurns) return endOf(rollout, "turn_limit");
  if (!history.answered) {
    const hint = observationTokens(spec.tokenizer, [{ role: "user", content: turn.parseError ?? "" }]);
    const segments = [history.append("hint", hint)];
    await ports.commitResults({ turn: turn.turn, results: [], segments, durationMs: 0, nextRanges: null });
  }
  return null;
}

interface Finish {
  readonly finalAnswer: string | null;
}

/** Runs what has no result yet, one call after the other. @returns the answer when a tool ended the rollout */
async function runOpenCalls(rollout: Rollout): Promise<Finish | null> {
  const { ports, history, signal } = rollout;
  for (let turn = history.lastTurn; turn !== null; turn = history.lastTurn) {
    const results = resultsInOrder(turn);
    const open = results.indexOf(null);
    const call = turn.calls[open];
    if (call === undefined) return storedAnswer(rollout, turn);
    signal.throwIfAborted();
    const startedAt = ports.now();
    const result = await runCall(rollout, call);
    const finished = result.finalAnswer !== undefined;
    const skipped = finished ? turn.calls.slice(open + 1).map(skip) : [];
    history.addResults([result, ...skipped]);
    const last = open === turn.calls.length - 1;
    const answer = last && !finished ? [history.append("observation", answerTokens(rollout))] : [];
    await ports.commitResults({
      turn: turn.turn,
      results: [result, ...skipped],
      segments: answer,
      durationMs: Math.max(0, ports.now() - startedAt),
      nextRanges: null,
    });
    if (result.finalAnswer !== undefined) return { finalAnswer: result.finalAnswer };
    if (last) return null;
  }
  return null;
}

const skip = (call: ToolCall): ToolResult => ({
  index: call.index,
  output: notRun,
  error: { code: "not_run", message: notRun },
  durationMs: 0,
});

/**
 * All calls ended and nothing follows: the turn finished the rollout before the worker was lost. Where storage keeps no final
 * answers, the tool that ended it is asked once more; it only gives back its argument.
 */
async function storedAnswer(rollout: Rollout, turn: CommittedTurn): Promise<Finish> {
  const results = resultsInOrder(turn);
  const kept = results.find((result) => result?.finalAnswer !== undefined)?.finalAnswer;
  if (kept !== undefined) return { finalAnswer: kept };
  const call = turn.calls[results.findLastIndex((result) => result?.error?.code !== "not_run")];
  return { finalAnswer: call === undefined ? null : ((await runCall(rollout, call)).finalAnswer ?? null) };
}

/** The observation of the last turn: one tool message a call, and what could not be read. */
function answerTokens({ spec, history }: Rollout): number[] {
  const turn = history.lastTurn;
  if (turn === null) return [];
  const results = resultsInOrder(turn);
  const messages: ChatMessage[] = turn.calls.map((call, i) => ({
    role: "tool",
    content: spec.dialect.renderResult(call, results[i]?.output ?? ""),
  }));
  if (turn.parseError !== null) messages.push({ role: "user", content: turn.parseError });
  return observationTokens(spec.tokenizer, messages);
}

const contextReason = (spec: RolloutSpec, used: number): string =>
  `${used} of ${spec.agent.maxContextTokens} context tokens are used`;

function endOf(
  { history }: Rollout,
  ending: Ending,
  facts: { readonly finalAnswer?: string | null; readonly reason?: string } = {},
): RolloutEnd {
  const toolCalls = history.turns.flatMap((turn) => {
    const results = resultsInOrder(turn);
    return turn.calls.map((call, i) => ({
      name: call.name,
      arguments: call.arguments,
      failed: results[i]?.error != null,
    }));
  });
  const { finalAnswer = null, reason = null } = facts;
  return { ending, finalAnswer, turns: history.turns.length, toolCalls, reason };
}
