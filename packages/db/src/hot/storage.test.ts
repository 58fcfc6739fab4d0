import { afterAll, beforeAll, expect, test } from "vitest";
import { historyPolicies, scriptRollout } from "../../testing/history-policies.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts } from "../../testing/seed-rollouts.ts";
import { BatchWriter } from "./batch-writer.ts";
import { readTrajectory } from "./read-trajectory.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test.each(historyPolicies)(
  "%s: each token is stored once, and every prompt comes back as the model saw it",
  async (policy) => {
    const run = await seedRollouts(database.pool, { count: 1 });
    const [rollout] = run.rollouts as [SeededRollout];
    const writer = new BatchWriter(database.pool);
    const script = scriptRollout(rollout, policy, 30, 7);
    for (const { entry } of script.turns) await writer.write(entry);
    await writer.close();

    const { segments, turns } = await readTrajectory(database.pool, rollout.rolloutId, 1);
    const tokens = segments.flatMap((segment) => segment.tokens);
    expect(tokens).toHaveLength(script.distinctTokens);
    const prompts = turns.map((turn) => turn.promptRanges.flatMap(({ start, end }) => tokens.slice(start, end)));
    expect(prompts).toEqual(script.turns.map(({ prompt }) => prompt));
    const { rows } = await database.pool.query(
      "select sum(length(tokens))::float8 / sum(length) as ids, sum(length(logprobs))::float8 / sum(length) filter (where logprobs is not null) as logprobs from segments where rollout_id = $1",
      [rollout.rolloutId],
    );
    expect(rows[0].ids).toBeLessThanOrEqual(2.5);
    expect(rows[0].logprobs).toBe(4);
  },
);
