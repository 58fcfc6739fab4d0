/** One agent's turn loop: sample, run the calls, answer, until it ends. Sub-agents are calls of it that run this again. */
import { type Ending, endingRule } from "@rolldeck/contracts/endings";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ContextChange, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import {
  type Segment,
  type TokenRange,
  type ToolCall,
  type ToolResult,
  type TurnRecord,
  threadOfCall,
} from "@rolldeck/contracts/segments";
import { agentView } from "./agent-view.ts";
import { type Answer, answerTurn } from "./answer-turn.ts";
import { assistantMessage } from "./assistant-message.ts";
import { changeContext } from "./change-context.ts";
import { delegationTooDeep, notRun, notRunAfterChange, subAgentWithoutAnswer } from "./feedback.ts";
import { foldThread } from "./fold-thread.ts";
import type { GrowingPrompt } from "./growing-prompt.ts";
import { openingTokens } from "./opening-tokens.ts";
import { readTurn } from "./read-turn.ts";
import type { Rollout } from "./rollout.ts";
import { failure, runCall } from "./run-call.ts";
import { takeSample } from "./take-sample.ts";
import { Thread } from "./thread.ts";
import { continues, joinRanges, rangesAfter, resultsInOrder } from "./trajectory.ts";
import { contextReason, type ThreadEnd, verdict } from "./verdict.ts";

/** Sub-agents of sub-agents, and no deeper. */
const maxDepth = 2;

/** @throws what the ports throw, and the signal's reason */
export async function runThread(rollout: Rollout, thread: Thread): Promise<ThreadEnd> {
  foldThread(rollout, thread);
  for (;;) {
    rollout.signal.throwIfAborted();
    const end = (await finishTurn(rollout, thread)) ?? (await takeTurn(rollout, thread));
    if (end !== null) return end;
  }
}

/** Samples one turn and commits it; ends the thread instead when the context has no room for a single token. */
async function takeTurn(rollout: Rollout, thread: Thread): Promise<ThreadEnd | null> {
  const { spec, ports, history } = rollout;
  const opened = history.segments;
  const prompt = thread.prompt ?? open(rollout, thread);
  const uncommitted = Array.from({ length: history.segments - opened }, (_, nth) => opened + nth);
  const [promptRanges, promptTokens] = [prompt.ranges(), prompt.length];
  const sample = await sampleWithin(rollout, thread, prompt);
  if ("ending" in sample) {
    // What was never shown to a policy is not stored either.
    history.takeBack(opened);
    return sample;
  }
  const { result, sampleMs } = sample;
  thread.transcript.settle();
  const { tokens, logprobs, policyVersion, stopReason, cacheHitTokens } = result;
  const sampled = history.append("sampled", tokens, { logprobs, policyVersion });
  const turn: TurnRecord = {
    turn: history.turns,
    promptRanges,
    promptTokens,
    sampledSegment: sampled.index,
    sampledTokens: tokens.length,
    stopReason,
    policyVersion,
    cacheHitTokens,
    sampleMs,
    thread: thread.plan.id,
    nextRanges: null,
    ...readTurn(spec, thread.plan.tools, result, history.dialectNoted),
  };
  await ports.commitTurn(turn, [...uncommitted.map((index) => history.segment(index)), sampled]);
  history.addTurn(turn);
  thread.addTurn(turn, history.wordsOf(turn));
  thread.transcript.add(() => [assistantMessage(rollout, turn)]);
  prompt.append(history.rangeOf(sampled.index));
  return null;
}

/** The thread's first prompt, as a segment that is committed with its first turn. */
function open({ spec, history }: Rollout, thread: Thread): GrowingPrompt {
  const opening = { ...spec, ...thread.plan, describeTools: spec.agent.describeTools };
  const index = history.appendTokens("template", openingTokens(spec.tokenizer, opening));
  thread.opening = [history.rangeOf(index)];
  return thread.setPrompt(thread.opening);
}

/** A server with a smaller window than the run's says so only when it is asked: that is a full context too, not a failure. */
async function sampleWithin(rollout: Rollout, { plan }: Thread, prompt: GrowingPrompt) {
  const full = (reason: string): ThreadEnd => ({ ending: "context_full", finalAnswer: null, reason });
  const room = rollout.spec.agent.maxContextTokens - prompt.length;
  if (room < 1) return full(contextReason(rollout.spec, prompt.length));
  try {
    return await takeSample(rollout, prompt, plan.tools, room);
  } catch (error) {
    if (!(error instanceof BoundaryError) || error.code !== "context_full") throw error;
    return full(error.message);
  }
}

/** Brings the newest turn to its end: open calls run, the answer is committed. @returns the thread's end, if this was it */
async function finishTurn(rollout: Rollout, thread: Thread): Promise<ThreadEnd | null> {
  const turn = thread.last;
  if (turn === null) return null;
  if (turn.calls.length > 0 && !thread.answered) {
    const finish = await runOpenCalls(rollout, thread);
    if (finish !== null) return { ending: "finish_tool", finalAnswer: finish, reason: null };
  }
  const end = verdict(rollout, thread);
  if (end !== null) return end;
  if (!thread.answered) await commitAnswer(rollout, thread, { results: [], durationMs: 0, change: null });
  return null;
}

/** Runs what has no result yet, one call after the other. @returns the answer when a tool ended the work */
async function runOpenCalls(rollout: Rollout, thread: Thread): Promise<string | null> {
  const { ports, signal } = rollout;
  for (let turn = thread.last; turn !== null && !thread.answered; turn = thread.last) {
    const results = resultsInOrder(turn);
    const finish = results.find((result) => result?.finalAnswer !== undefined)?.finalAnswer;
    if (finish !== undefined) return finish;
    const open = results.indexOf(null);
    const call = turn.calls[open];
    if (call === undefined) return null;
    signal.throwIfAborted();
    const startedAt = ports.now();
    const { result, context } = await runCall(rollout, thread, call, (fitting) => delegated(rollout, thread, fitting));
    const over = result.finalAnswer !== undefined;
    const skipped = over || context !== null ? turn.calls.slice(open + 1).map((left) => skip(left, over)) : [];
    const durationMs = Math.max(0, ports.now() - startedAt);
    const ended = { results: [result, ...skipped], durationMs, change: context };
    if (over || open + ended.results.length < turn.calls.length) await commitPart(rollout, thread, ended);
    else await commitAnswer(rollout, thread, ended);
  }
  return null;
}

const skip = (call: ToolCall, over: boolean): ToolResult => {
  const message = over ? notRun : notRunAfterChange;
  return { index: call.index, output: message, error: { code: "not_run", message }, durationMs: 0 };
};

interface Ended {
  readonly results: readonly ToolResult[];
  readonly durationMs: number;
  readonly change: ContextChange | null;
}

/** Results that nothing follows yet, or ever. */
async function commitPart({ ports, history }: Rollout, thread: Thread, { results, durationMs }: Ended): Promise<void> {
  const turn = thread.last;
  if (turn === null) return;
  await ports.commitResults({ turn: turn.turn, results, segments: [], durationMs, nextRanges: null });
  history.addResults(turn, results);
  thread.addResults(results);
}

/** The turn's last results with what the model will see next. */
async function commitAnswer(rollout: Rollout, thread: Thread, ended: Ended): Promise<void> {
  const { spec, ports, history } = rollout;
  const { results, durationMs, change } = ended;
  thread.addResults(results);
  const { last, prompt } = thread;
  if (last === null || prompt === null) return;
  const answer = change?.kind === "restart" ? null : answerTurn(spec, thread);
  const segments: Segment[] = (answer?.parts ?? []).map((part) => history.append(part.origin, part.tokens));
  const sampled = prompt.ranges();
  const through = joinRanges([...sampled, ...history.rangesOf(segments)]);
  const next = change === null ? null : changeContext(rollout, thread, change, through);
  const ranges = next?.ranges ?? through;
  segments.push(...(next?.segments ?? []));
  // A sub-agent's turns lie between this turn and its answer: then too the next prompt is not simply what follows.
  const plain = ranges === through && segments[0]?.index === last.sampledSegment + 1;
  const nextRanges = plain ? null : joinRanges(ranges);
  await ports.commitResults({ turn: last.turn, results, segments, durationMs, nextRanges });
  history.addResults(last, results);
  advance(thread, { change, answer, changed: !continues(ranges, sampled), ranges });
}

interface Advance {
  readonly change: ContextChange | null;
  readonly answer: Answer | null;
  readonly changed: boolean;
  readonly ranges: readonly TokenRange[];
}

function advance(thread: Thread, { change, answer, changed, ranges }: Advance): void {
  const { transcript, prompt } = thread;
  if (changed || prompt === null) {
    thread.setPrompt(ranges);
    if (change?.kind === "restart") transcript.restart(change.messages);
    else transcript.lose();
  } else {
    for (const range of rangesAfter(ranges, prompt.length)) prompt.append(range);
    transcript.add(() => answer?.messages ?? []);
  }
  thread.close(changed);
}

/** A call that hands its work to a sub-agent: a thread of its own, whose answer is the call's output. */
async function delegated(rollout: Rollout, thread: Thread, call: ToolCall): Promise<ToolOutcome | null> {
  const { spec, ports, history } = rollout;
  const delegation = ports.delegate?.(call, agentView(spec, thread)) ?? null;
  if (delegation === null) return null;
  const { depth } = thread.plan;
  if (depth >= maxDepth) return failure("too_deep", delegationTooDeep(depth));
  const plan = {
    id: threadOfCall({ turn: thread.last?.turn ?? 0, thread: thread.plan.id }, call.index),
    depth: depth + 1,
    messages: delegation.messages,
    tools: spec.tools.filter(({ name }) => delegation.tools.includes(name)),
    maxTurns: Math.max(1, delegation.maxTurns),
  };
  const { ending, finalAnswer, reason } = await runThread(rollout, new Thread(plan, history));
  if (isFinished(ending) && finalAnswer !== null) return { output: finalAnswer };
  return failure("sub_agent", subAgentWithoutAnswer(endingRule(ending).label, reason));
}

const isFinished = (ending: Ending): boolean => endingRule(ending).kind === "finished";
