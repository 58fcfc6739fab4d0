/** Wherever the worker is lost, another one goes on from storage and the rollout ends as if nothing had happened. */

import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { SampleRequest } from "@rolldeck/contracts/ports/sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ContextChange, Delegation } from "@rolldeck/contracts/ports/tool";
import type { ToolCall } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  quickstartFolder,
  rolloutSpec,
  type ScriptedOptions,
  scriptedRollout,
  WorkerLost,
} from "../../testing/scripted-rollout.ts";
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

  it("is continued exactly through changes of context, sub-agents, hints, cut turns and refused calls", async () => {
    const line = fc.constantFrom(
      '[get(key="a")]',
      '[get(key="b"), get(key="c")]',
      '[get(key="a"), next(n=1), get(key="z")]',
      "[next(n=2)]",
      "[next(n=3)]",
      "[next(n=4)]",
      '[ask(task="b?"), get(key="c"), ask(task="c?")]',
      '[ask(task="b?")]',
      '[got(key="a")]',
      "no call at all",
      "cut",
      '[finish(answer="7")]',
    );
    const agent = fc.record({
      callPolicy: fc.constantFrom("all", "first", "refuse"),
      onLength: fc.constantFrom("tell", "end"),
      hints: fc.constantFrom([], ["steps-left", "repeated-failure", "context-nearly-full", "malformed-call"]),
      maxContextTokens: fc.constantFrom(500, 3000),
    });
    const extra: readonly ToolSpec[] = [
      { name: "next", description: "", parameters: { type: "object", properties: { n: { type: "integer" } } } },
      { name: "ask", description: "", parameters: { type: "object", properties: { task: { type: "string" } } } },
    ];
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 3, maxLength: 9 }), agent, async (lines, config) => {
        const policy = lines.map((text) => (text === "cut" ? () => cutSample : text));
        const scripted = (more: Partial<ScriptedOptions>) =>
          scriptedRollout({ tokenizer, policy, tools: contextTools, delegations: { ask: subAgent }, ...more });
        const spec = rolloutSpec(tokenizer, { maxTurns: 7, parseRetries: 1, lengthRetries: 1, ...config });
        const all = { ...spec, tools: [...spec.tools, ...extra] };
        const whole = scripted({});
        const end = await runRollout(all, null, whole, signal);
        const commits = whole.log.filter((entry) => /^(turn|results)/.test(entry)).length;
        for (let lost = 0; lost < commits; lost++) {
          const first = scripted({ lostAtCommit: lost });
          await expect(runRollout(all, null, first, signal)).rejects.toThrow(WorkerLost);
          const stored = first.stored();
          const second = scripted({ stored });
          expect(await runRollout(all, stored, second, signal)).toEqual(end);
          expect(timeless(second.stored())).toEqual(timeless(whole.stored()));
          expect(second.requests.map(asSent)).toEqual(whole.requests.slice(stored.turns.length).map(asSent));
          // Tools that run again see the agent as it was.
          expect(second.views).toEqual(whole.views.slice(whole.views.length - second.views.length));
        }
        const done = scripted({ stored: whole.stored() });
        expect(await runRollout(all, whole.stored(), done, signal)).toEqual(end);
        expect(done.log).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });
  const cutSample = {
    tokens: [120, 121],
    logprobs: [-0.1, -0.1],
    stopReason: "length" as const,
    policyVersion: 1,
    cacheHitTokens: 0,
  };
  const contexts: readonly ContextChange[] = [
    { kind: "restart", messages: [{ role: "user", content: "find b" }] },
    { kind: "summary", text: "so far", keepTurns: 1 },
    { kind: "drop-observations", keep: 1 },
    { kind: "drop-observations", keep: 0 },
  ];
  const contextTools: NonNullable<ScriptedOptions["tools"]> = {
    get: (call) => ({ output: `next after ${String(call.arguments.key)}` }),
    next: (call) => ({ output: "changed", context: contexts[Number(call.arguments.n) - 1] }),
    finish: (call) => ({ output: "done", finalAnswer: String(call.arguments.answer) }),
  };
  const subAgent = (call: ToolCall): Delegation => ({
    messages: [{ role: "user", content: String(call.arguments.task) }],
    tools: ["get", "finish", "ask", "next"],
    maxTurns: 2,
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
      expect(again.log).toEqual([]);
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
