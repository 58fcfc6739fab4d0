/** Wherever the worker is lost, another one goes on from storage and the rollout ends as if nothing had happened. */
import type { SampleRequest } from "@rolldeck/contracts/ports/sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, scriptedRollout, WorkerLost } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { canContinue } from "./can-continue.ts";
import { runRollout } from "./run-rollout.ts";
import type { Trajectory } from "./trajectory.ts";
import { turnSeed } from "./turn-seed.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});
const signal = new AbortController().signal;

const said = fc.constantFrom(
  '[get(key="a")]',
  '[get(key="b"), get(key="c")]',
  '[get(key="b"), got(key="c"), get(key="a")]',
  '[get("x"), get(key="a")]',
  "no call at all",
  '[get(key="a"), finish(answer="7"), get(key="z")]',
  '[finish(answer="7")]',
);
const timeless = ({ segments, turns }: Trajectory) => ({
  segments,
  turns: turns.map((turn) => ({
    ...turn,
    sampleMs: 0,
    results: turn.results.map((result) => (result === null ? null : { ...result, durationMs: 0 })),
  })),
});

/** A request with its prompt as numbers. */
const asSent = ({ prompt, ...rest }: SampleRequest) => ({ ...rest, prompt: prompt.toArray() });

describe("a rollout whose worker is lost", () => {
  it("ends with the same trajectory, each turn sampled once and each ended call run once", async () => {
    const agent = { maxTurns: 6, parseRetries: 1, maxContextTokens: 400 };
    await fc.assert(
      fc.asyncProperty(fc.array(said, { minLength: 1, maxLength: 6 }), async (policy) => {
        const whole = scriptedRollout({ tokenizer, policy });
        const end = await runRollout(rolloutSpec(tokenizer, agent), null, whole, signal);
        const commits = whole.log.filter((line) => /^(turn|results)/.test(line)).length;
        for (let lost = 0; lost < commits; lost++) {
          const first = scriptedRollout({ tokenizer, policy, lostAtCommit: lost });
          await expect(runRollout(rolloutSpec(tokenizer, agent), null, first, signal)).rejects.toThrow(WorkerLost);
          const stored = first.stored();
          const second = scriptedRollout({ tokenizer, policy, stored });
          expect(await runRollout(rolloutSpec(tokenizer, agent), stored, second, signal)).toEqual(end);
          expect(timeless(second.stored())).toEqual(timeless(whole.stored()));
          // What was committed is neither sampled nor run again.
          expect(second.requests.map(asSent)).toEqual(whole.requests.slice(stored.turns.length).map(asSent));
          const ended = stored.turns.flatMap((turn) => turn.results).filter((result) => result !== null);
          const calls = whole.stored().turns.flatMap((turn) => turn.results).length;
          expect(second.toolCalls.length).toBeLessThanOrEqual(calls - ended.length);
        }
      }),
      { numRuns: 40 },
    );
  });

  it("ends the same when everything was committed but the edge", async () => {
    const endings: Record<string, Parameters<typeof scriptedRollout>[0]["policy"]> = {
      finish_tool: ['[get(key="a")]', '[get(key="b"), finish(answer="7"), get(key="z")]'],
      loop: ['[get(key="a")]'],
      no_call: ["hm"],
      turn_limit: (turn) => `[get(key="${turn}")]`,
      length: [(request) => ({ ...lengthCut, tokens: lengthCut.tokens.slice(0, request.maxTokens) })],
    };
    for (const [ending, policy] of Object.entries(endings)) {
      const spec = rolloutSpec(tokenizer, { maxTurns: 6 });
      const first = scriptedRollout({ tokenizer, policy });
      const end = await runRollout(spec, null, first, signal);
      const again = scriptedRollout({ tokenizer, policy, stored: first.stored() });
      expect(await runRollout(spec, first.stored(), again, signal)).toEqual(end);
      expect(end.ending).toBe(ending);
      expect(again.requests).toEqual([]);
      expect(again.log.filter((line) => !line.startsWith("tool finish"))).toEqual([]);
    }
  });
  const lengthCut = {
    tokens: [120, 121],
    logprobs: [-0.1, -0.1],
    stopReason: "length" as const,
    policyVersion: 1,
    cacheHitTokens: 0,
  };

  it("may go on unless a call was open whose tool can't run twice", async () => {
    const policy = ['[get(key="a"), get(key="b")]'];
    const stored: Trajectory[] = [];
    for (const lostAtCommit of [0, 1, 2, 3]) {
      const ports = scriptedRollout({ tokenizer, policy, lostAtCommit });
      await runRollout(rolloutSpec(tokenizer), null, ports, signal).catch(() => null);
      stored.push(ports.stored());
    }
    expect(stored.map((trajectory) => canContinue(trajectory, () => true))).toEqual([true, true, true, true]);
    // Before the first turn · both calls open · one open · all ended.
    expect(stored.map((trajectory) => canContinue(trajectory, () => false))).toEqual([true, false, false, true]);
  });
});

describe("turnSeed", () => {
  it("depends on rollout and turn alone, and spreads both", () => {
    const seeds = new Set<number>();
    for (let rollout = 0; rollout < 100; rollout++) {
      for (let turn = 0; turn < 50; turn++) {
        const seed = turnSeed(rollout, turn);
        expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31).toBe(true);
        seeds.add(seed);
      }
    }
    expect(seeds.size).toBe(5000);
    expect(turnSeed(5, 2)).toBe(turnSeed(5, 2));
  });
});
