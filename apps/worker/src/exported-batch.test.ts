/** What a real run stored keeps the promises of the neutral form, and every trainer's shape can be made of it. */
import { trainedMask } from "@rolldeck/contracts/batch-row";
import { sharedMetricNames } from "@rolldeck/contracts/shared-metrics";
import { readBatch } from "@rolldeck/db/reads/read-batch";
import { readMatrix } from "@rolldeck/db/reads/read-matrix";
import { checkSkyrl, exportSkyrl } from "@rolldeck/rl/export-skyrl";
import { exportTinker } from "@rolldeck/rl/export-tinker";
import { checkVerl, exportVerl } from "@rolldeck/rl/export-verl";
import { sharedMetrics } from "@rolldeck/rl/shared-metrics";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

test("the batches of a run's steps are whole, and export", async () => {
  rig = await startRig({ queue: "postgres" });
  // The scripted policy always succeeds: without the filter such groups get their forward pass too.
  const runId = await rig.launch(smokeConfig({ algorithm: { filterZeroVariance: false } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  for (const step of [1, 2]) {
    const { rows, next } = await readBatch(rig.database.pool, {
      runId,
      step,
      after: -1,
      limit: 10_000,
      maxTokens: 1e6,
    });
    expect(next).toBeNull();
    const rolloutsOfStep = `select count(*)::int from rollouts r join steps s on s.id = r.step_id
                             where r.run_id = $1 and s.purpose = 'train' and s.step = $2`;
    expect(new Set(rows.map(({ rolloutId }) => rolloutId)).size).toBe(await rig.value(rolloutsOfStep, [runId, step]));
    expect(rows.some(({ sent }) => sent)).toBe(true);
    for (const row of rows) {
      expect(row.learnerVersion).toBe(step - 1);
      expect(row.policyVersions.every((version) => version === null || version === step - 1)).toBe(true);
      const trained = trainedMask(row);
      expect(trained.includes(1)).toBe(row.sent);
      // The update has told what its model gave each token that it was trained on.
      const told = (place: number): boolean => (row.trainerLogprobs?.[place] ?? null) !== null;
      expect(trained.every((kept, place) => kept === 0 || told(place))).toBe(true);
      const { weights, advantages } = exportTinker(row);
      expect(weights).toEqual(trained.slice(1));
      expect(advantages).toEqual(trained.slice(1).map((kept) => kept * row.advantage * row.scale));
    }
    const skyrl = exportSkyrl(rows);
    checkSkyrl(skyrl.output);
    expect(skyrl.leftOut).toEqual([]);
    checkVerl(exportVerl(rows, { padTokenId: 0 }));
  }
});

test.each([
  ["as they are", {}],
  ["after corrections", { offPolicy: { weight: "token", tokenHigh: 4 } }],
] as const)(
  "shared metrics are what anybody recomputes from the stored rows, to the bit: rows %s",
  async (_, change) => {
    rig = await startRig({ queue: "postgres" });
    const runId = await rig.launch(smokeConfig({ algorithm: { filterZeroVariance: false, ...change } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    for (const step of [1, 2]) {
      const whole = { after: -1, limit: 10_000, maxTokens: 1e6 };
      const { rows } = await readBatch(rig.database.pool, { runId, step, ...whole });
      const matrix = await readMatrix(rig.database.pool, { runId, purpose: "train", step });
      const rollouts = matrix.groups.filter(({ setAside }) => setAside === null).flatMap(({ cells }) => cells);
      const { rows: points } = await rig.database.pool.query(
        "select name, value from metric_points where run_id = $1 and step = $2 and name like 'shared/%'",
        [runId, step],
      );
      const written = Object.fromEntries(points.map(({ name, value }) => [name, value]));
      expect(written).toEqual(sharedMetrics(rows, rollouts));
      expect(Object.keys(written).toSorted()).toEqual(sharedMetricNames.toSorted());
      expect(written["shared/trained-tokens"]).toBeGreaterThan(0);
      // The backend's own words stay as it said them.
      const own = `select count(*)::int from metric_points where run_id = $1 and step = $2 and name like 'native/gpu-worker/%'`;
      expect(await rig.value(own, [runId, step])).toBeGreaterThan(0);
    }
  },
);
