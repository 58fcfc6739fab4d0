import { FencedError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts, turnEntry } from "../../testing/seed-rollouts.ts";
import { createPool } from "../connect.ts";
import { BatchWriter } from "./batch-writer.ts";
import { claimStage } from "./claim-stage.ts";
import { readTrajectory } from "./read-trajectory.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const turnsWanted = 12;

/** A worker that takes whatever stage it can and goes on from the last committed turn until it is fenced. */
async function work(rollouts: readonly SeededRollout[], name: string, answered: Set<string>): Promise<void> {
  const pool = createPool(database.url, { max: 4 });
  const writer = new BatchWriter(pool, { maxEntries: 4 });
  const lane = async (rollout: SeededRollout): Promise<void> => {
    for (let tries = 0; tries < 400; tries++) {
      const claimed = await claimStage(pool, { ...rollout, stage: "run", workerId: name });
      if (claimed === null) {
        const { rows } = await pool.query("select turns from rollouts where id = $1", [rollout.rolloutId]);
        if (rows[0].turns >= turnsWanted) return;
        continue;
      }
      const { turns } = await readTrajectory(pool, rollout.rolloutId, 1);
      for (let turn = turns.length; turn < turnsWanted; turn++) {
        try {
          await writer.write(turnEntry({ ...rollout, claim: claimed.claim }, turn));
          const key = `${rollout.rolloutId} ${turn}`;
          expect(answered.has(key)).toBe(false);
          answered.add(key);
        } catch (error) {
          if (error instanceof FencedError) break;
          throw error;
        }
      }
    }
  };
  await Promise.all(rollouts.map(lane));
  await writer.close();
  await pool.end();
}

test("workers that lose their leases at any moment never write a turn twice, out of order, or after another took over (fault 41)", async () => {
  const { runId, rollouts } = await seedRollouts(database.pool, { count: 6, state: "queued" });
  const answered = new Set<string>();
  let expiring = true;
  const expire = (async () => {
    while (expiring) {
      await database.pool.query(
        // Rows are locked by id, as everywhere: in another order this would block the writers it is to disturb.
        `with chosen as materialized (
           select id from rollouts where run_id = $1 and state = 'active' and random() < 0.3 order by id for no key update)
         update rollouts r set lease_until = now() - interval '1 second' from chosen where r.id = chosen.id`,
        [runId],
      );
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  await Promise.all(["w1", "w2", "w3"].map((name) => work(rollouts, name, answered)));
  expiring = false;
  await expire;
  expect(answered.size).toBe(rollouts.length * turnsWanted);
  for (const { rolloutId } of rollouts) {
    const { rows } = await database.pool.query(
      "select turn, claim from transitions where rollout_id = $1 order by turn",
      [rolloutId],
    );
    expect(rows.map((row) => row.turn)).toEqual(Array.from({ length: turnsWanted }, (_, turn) => turn));
    const claims = rows.map((row) => row.claim);
    expect(claims).toEqual([...claims].sort((a, b) => a - b));
    const { segments } = await readTrajectory(database.pool, rolloutId, 1);
    expect(segments.map(({ index }) => index)).toEqual(Array.from({ length: turnsWanted * 2 }, (_, index) => index));
  }
  const { rows: log } = await database.pool.query("select seq from events where run_id = $1 order by seq", [runId]);
  expect(log.map((row) => row.seq)).toEqual(log.map((_, place) => place + 1));
  const { rows: turns } = await database.pool.query(
    "select count(*) as n from events where run_id = $1 and type = 'turn-sampled'",
    [runId],
  );
  expect(turns[0].n).toBe(rollouts.length * turnsWanted);
});
