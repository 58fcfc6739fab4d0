/**
 * Random trajectories of the real loop (restarts, summaries, drops, sub-agents, retries, cut turns, hints, contradicted samples)
 * through the real row builder: every row holds what the policy saw, every sampled token has one row, and none is trained that
 * has a reason not to be.
 */
import { runRollout } from "@rolldeck/agent/core/run-rollout";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import {
  getAndFinish,
  quickstartFolder,
  rolloutSpec,
  saying,
  scriptedRollout,
} from "@rolldeck/agent/testing/scripted-rollout";
import { hintNames } from "@rolldeck/contracts/agent-config";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ContextChange, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { ToolCall, TurnNote, TurnRecord } from "@rolldeck/contracts/segments";
import { buildUpdate } from "@rolldeck/rl/build-update";
import { decodeMask, type TokenMask } from "@rolldeck/rl/mask-reasons";
import { allTokens, positionsOf, segmentOffsets } from "@rolldeck/rl/trajectory-tokens";
import fc from "fast-check";
import { beforeAll, expect, test, vi } from "vitest";

vi.setConfig({ testTimeout: 120_000 });

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

const change = (call: ToolCall): ContextChange => {
  const key = String(call.arguments.key);
  if (call.name === "restart") return { kind: "restart", messages: [{ role: "user", content: `find ${key}` }] };
  if (call.name === "summary") return { kind: "summary", text: key, keepTurns: key.length % 3 };
  return { kind: "drop-observations", keep: key.length % 3 };
};
const changed = (call: ToolCall): ToolOutcome => ({ output: "changed", context: change(call) });
const toolNamed = (name: string) => ({ ...getAndFinish[0], name }) as (typeof getAndFinish)[number];
const specs = [...getAndFinish, ...["restart", "summary", "drop", "ask"].map(toolNamed)];

interface Said {
  readonly text: string;
  readonly cut: boolean;
  readonly notes: readonly TurnNote[];
}
const call = fc
  .tuple(fc.constantFrom("get", "restart", "summary", "drop", "ask", "got"), fc.constantFrom("a", "bb", "ccc"))
  .map(([name, key]) => `${name}(key="${key}")`);
const said: fc.Arbitrary<Said> = fc.record({
  text: fc.oneof(
    { weight: 5, arbitrary: fc.array(call, { minLength: 1, maxLength: 3 }).map((calls) => `[${calls.join(", ")}]`) },
    { weight: 1, arbitrary: fc.constantFrom("no call", "[get(", '[finish(answer="7")]') },
  ),
  cut: fc.nat(5).map((n) => n === 0),
  notes: fc.nat(7).map((n) => (n === 0 ? [{ kind: "usage" as const, message: "counts disagree" }] : [])),
});

const agent = {
  maxTurns: 14,
  parseRetries: 3,
  maxContextTokens: 600,
  onLength: "tell" as const,
  lengthRetries: 3,
  hints: [...hintNames],
  earlyStepThreshold: 4,
};

async function roll(script: readonly Said[]) {
  const ports = scriptedRollout({
    tokenizer,
    policy: script.map(({ text, cut, notes }) => ({ maxTokens }) => {
      const whole = saying(tokenizer, text, { notes });
      const kept = cut ? Math.min(maxTokens, whole.tokens.length - 1) : whole.tokens.length;
      if (kept === whole.tokens.length && kept <= maxTokens) return whole;
      const tokens = whole.tokens.slice(0, Math.min(kept, maxTokens));
      return { ...whole, stopReason: "length", tokens, logprobs: whole.logprobs?.slice(0, tokens.length) ?? null };
    }),
    tools: {
      get: ({ arguments: args }) => ({ output: `next after ${String(args.key)}` }),
      finish: ({ arguments: args }) => ({ output: "", finalAnswer: String(args.answer) }),
      restart: changed,
      summary: changed,
      drop: changed,
    },
    delegations: {
      ask: ({ arguments: args }) => ({
        messages: [{ role: "user", content: `find ${String(args.key)}` }],
        tools: specs.map(({ name }) => name),
        maxTurns: 3,
      }),
    },
  });
  const end = await runRollout(
    rolloutSpec(tokenizer, agent, { tools: specs }),
    null,
    ports,
    new AbortController().signal,
  );
  return { end, ports };
}

/** Why a turn's tokens are not trained, said again from the turn alone. */
function expected(turn: TurnRecord, newest: boolean): TokenMask {
  if (turn.notes.some(({ kind }) => kind === "usage")) return "incomplete-sample";
  if (turn.stopReason === "length") return newest && turn.thread === "" ? null : "turn-cut";
  return turn.parseError !== null && turn.calls.length === 0 ? "parse-retry" : null;
}

test("rows hold what was seen, and each sampled token once, trained only where nothing speaks against it", async () => {
  const { algorithm } = RunConfig.parse({ taskSets: [{ name: "x" }], algorithm: { trainCut: true } });
  await fc.assert(
    fc.asyncProperty(fc.array(said, { minLength: 1, maxLength: 14 }), async (script) => {
      const { ports, end } = await roll([...script, { text: '[finish(answer="7")]', cut: false, notes: [] }]);
      const trajectory = ports.stored();
      const rollout = { attempt: 1, ending: end.ending, trajectory };
      const { rows } = buildUpdate({
        groups: [
          {
            groupId: "g",
            rollouts: [
              { ...rollout, rolloutId: "a", reward: 1 },
              { ...rollout, rolloutId: "b", reward: 0 },
            ],
          },
        ],
        algorithm,
        maxContextTokens: agent.maxContextTokens,
      });
      const own = rows.filter(({ rolloutId }) => rolloutId === "a");
      const tokens = allTokens(trajectory.segments);
      const offsets = segmentOffsets(trajectory.segments);
      const places = own.map((row) => [...positionsOf(row.ranges)]);
      const masks = own.map((row) => decodeMask(row.mask));
      for (const [at, turn] of trajectory.turns.entries()) {
        const start = offsets[turn.sampledSegment] ?? 0;
        const seen = [
          ...(ports.requests[at]?.prompt.toArray() ?? []),
          ...tokens.slice(start, start + turn.sampledTokens),
        ];
        for (let position = start; position < start + turn.sampledTokens; position++) {
          const found = places.flatMap((row, nth) =>
            row.flatMap((other, place) =>
              other === position && masks[nth]?.[place] !== "other-row" ? [{ nth, place }] : [],
            ),
          );
          expect(found).toHaveLength(1);
          const [{ nth, place } = { nth: -1, place: -1 }] = found;
          expect(masks[nth]?.[place]).toBe(expected(turn, turn === trajectory.turns.at(-1)));
          const shown = places[nth]?.slice(0, place + 1).map((other) => tokens[other]);
          expect(shown).toEqual(seen.slice(0, (ports.requests[at]?.prompt.length ?? 0) + position - start + 1));
        }
      }
      for (const [nth, mask] of masks.entries()) {
        mask.forEach((reason, place) => {
          if (reason !== null) return;
          const position = places[nth]?.[place] ?? -1;
          const index = offsets.findLastIndex((offset) => offset <= position);
          expect(trajectory.segments[index]?.origin).toBe("sampled");
        });
      }
    }),
    { numRuns: 60 },
  );
});
