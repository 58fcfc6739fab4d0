/**
 * Rollouts whose agent shows the model not the whole history: what each turn's prompt is, and the entries that store it. The prompt
 * is kept here as plain ids, so a test can compare it with what the stored ranges give back.
 */
import type { Segment, TokenRange } from "@rolldeck/contracts/segments";
import type { TurnEntry } from "../src/hot/entries.ts";
import type { SeededRollout } from "./seed-rollouts.ts";

export const historyPolicies = ["plain", "keepLast8", "dropOld10"] as const;
export type HistoryPolicy = (typeof historyPolicies)[number];

export interface ScriptedTurn {
  readonly entry: TurnEntry;
  /** Ids the model saw. */
  readonly prompt: readonly number[];
}
export interface ScriptedRollout {
  readonly turns: readonly ScriptedTurn[];
  /** Tokens that differ in content or origin: what must be stored, once each. */
  readonly distinctTokens: number;
}

const [headTokens, observationTokens, sampledTokens, stubTokens] = [200, 120, 60, 6];
const vocabulary = 151_936;

/** Lays segments one after the other and remembers where each lies. */
class Layout {
  readonly segments: Segment[] = [];
  readonly tokens: number[] = [];
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  add(origin: Segment["origin"], count: number): TokenRange {
    const start = this.tokens.length;
    const ids = Array.from({ length: count }, () => this.#next());
    this.tokens.push(...ids);
    this.segments.push({
      index: this.segments.length,
      origin,
      tokens: ids,
      logprobs: origin === "sampled" ? ids.map((id) => -id / vocabulary) : null,
      policyVersion: origin === "sampled" ? 0 : null,
    });
    return { start, end: start + count };
  }

  #next(): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#seed % vocabulary;
  }
}

export function scriptRollout(
  rollout: SeededRollout,
  policy: HistoryPolicy,
  turns: number,
  seed: number,
): ScriptedRollout {
  const layout = new Layout(seed);
  const head = layout.add("template", headTokens);
  // What stands for an observation that was dropped is stored once, however often it is shown.
  const stub = policy === "dropOld10" ? layout.add("hint", stubTokens) : null;
  const history: { observation: TokenRange; sampled: TokenRange }[] = [];
  const scripted: ScriptedTurn[] = [];
  let written = 0;
  for (let turn = 0; turn < turns; turn++) {
    const observation = layout.add("observation", observationTokens);
    const shown = [head, ...shownHistory(policy, history, stub), observation];
    const ranges = joined(shown);
    const prompt = ranges.flatMap(({ start, end }) => layout.tokens.slice(start, end));
    const sampled = layout.add("sampled", sampledTokens);
    history.push({ observation, sampled });
    const segments = layout.segments.slice(written);
    written = layout.segments.length;
    scripted.push({ prompt, entry: turnOf(rollout, turn, ranges, prompt.length, segments) });
  }
  return { turns: scripted, distinctTokens: layout.tokens.length };
}

function shownHistory(
  policy: HistoryPolicy,
  history: readonly { observation: TokenRange; sampled: TokenRange }[],
  stub: TokenRange | null,
): TokenRange[] {
  if (policy === "keepLast8") return history.slice(-8).flatMap(({ observation, sampled }) => [observation, sampled]);
  return history.flatMap(({ observation, sampled }, at) =>
    stub !== null && at < history.length - 10 ? [stub, sampled] : [observation, sampled],
  );
}

/** Neighbours become one range. */
function joined(ranges: readonly TokenRange[]): TokenRange[] {
  const result: TokenRange[] = [];
  for (const range of ranges) {
    const last = result.at(-1);
    if (last && last.end === range.start) result[result.length - 1] = { start: last.start, end: range.end };
    else result.push(range);
  }
  return result;
}

function turnOf(
  rollout: SeededRollout,
  turn: number,
  promptRanges: readonly TokenRange[],
  promptTokens: number,
  segments: readonly Segment[],
): TurnEntry {
  return {
    kind: "turn",
    ...rollout,
    segments,
    turn: {
      turn,
      promptRanges,
      promptTokens,
      sampledSegment: segments.at(-1)?.index ?? 0,
      sampledTokens,
      stopReason: "stop",
      policyVersion: 0,
      cacheHitTokens: 0,
      sampleMs: 1,
      parseError: null,
      thread: "",
      notes: [],
      nextRanges: null,
      calls: [],
    },
  };
}
