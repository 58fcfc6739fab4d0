/** Groups of rollouts for property tests: turns that go on, turns that lost their history, answers of any length, also none. */
import fc from "fast-check";
import type { WrittenRollout } from "./build-batch-rows.ts";
import type { WrittenTurn } from "./build-trajectory.ts";

const tokens = (min: number, max: number) =>
  fc.array(fc.integer({ min: 1, max: 60 }), { minLength: min, maxLength: max });

const draft = fc.record({
  added: tokens(1, 4),
  sampled: fc.oneof({ weight: 12, arbitrary: tokens(1, 5) }, { weight: 1, arbitrary: fc.constant<number[]>([]) }),
  keepsHistory: fc.boolean(),
  logprobs: fc.constantFrom("all", "all", "all", "none", "one missing"),
});

const rollout: fc.Arbitrary<WrittenRollout> = fc
  .record({
    drafts: fc.array(draft, { minLength: 1, maxLength: 4 }),
    reward: fc.option(fc.double({ min: -2, max: 2, noNaN: true }), { freq: 8 }),
    ending: fc.constantFrom("answer", "answer", "finish_tool", "turn_limit", "context_full", "infrastructure"),
  })
  .map(({ drafts, reward, ending }) => {
    let history: number[] = [];
    const turns = drafts.map(({ added, sampled, keepsHistory, logprobs }): WrittenTurn => {
      const prompt = keepsHistory ? [...history, ...added] : added;
      history = [...prompt, ...sampled];
      const told = sampled.map((_, t) => (logprobs === "one missing" && t === 0 ? Number.NaN : -(t + 1) / 8));
      return { prompt, sampled, logprobs: logprobs === "none" ? null : told };
    });
    return { turns, ending: ending as WrittenRollout["ending"], reward: ending === "infrastructure" ? null : reward };
  });

export const arbitraryGroups = fc.array(fc.array(rollout, { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 3,
});
