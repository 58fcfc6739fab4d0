/** Adaptive concurrency on a live run: the engine's own word, read by the worker, moves the run's limit, and never twice at once. */
import { startCompletionServer } from "@rolldeck/backends/testing/completion-server";
import { gpuWorkerName } from "@rolldeck/db/gpu-workers";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 180_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const bound = 16;

test("a run that crowds its engine is trimmed to what it bears, and grows when the engine has room", async () => {
  // Sequences that the engine has rows for, and that fill its cache. The queue shows before the cache is full.
  let room = { rows: 8, cache: 18 };
  const made = await startRig({
    // Rollouts long against what it takes to begin the next one, on a busy machine too: a limit grows only while it is used.
    delayMs: 3_000,
    load: (samples) => ({
      running: Math.min(samples, room.rows),
      waiting: Math.max(0, samples - room.rows),
      cache_use: Math.min(1, samples / room.cache),
    }),
  });
  rig = made;
  const runId = await made.launch(
    smokeConfig({
      dispatcher: { adaptive: true, bounds: { init: 64, run: bound, evaluate: 64 } },
      // One step that outlasts the test: the engine is never idle between two.
      algorithm: { groupsPerStep: 64, groupSize: 8 },
      budget: { steps: 1 },
    }),
  );
  const changes = async () =>
    (await made.events(runId)).flatMap((body) => (body.type === "run-limit-changed" ? [body] : []));
  /** As if the hold of the last change were over. */
  let holds = 0;
  const endHold = async () => {
    holds++;
    await made.database.pool.query(
      "update runs set run_limit_since = run_limit_since - interval '31 seconds' where id = $1",
      [runId],
    );
  };
  const another = (after: number) => made.until("another limit", async () => (await changes())[after]);
  /** Readings that were taken from now on, at least so many. */
  const readings = async (count: number) => {
    const readAt = () => made.value("select (load ->> 'at')::float8 from gpu_workers where name = 'gpu-worker'");
    for (let seen = await readAt(), n = 0; n < count; n++) {
      seen = await made.until("another reading", async () => {
        const at = await readAt();
        return at !== seen && at;
      });
    }
  };

  const first = await another(0);
  expect(first).toMatchObject({
    from: null,
    reason: expect.stringMatching(/^fewer at once: \d+ requests wait inside/),
  });
  expect(first.to).toBeLessThan(bound);
  // It is held, whatever the engine says meanwhile.
  await readings(2);
  expect(await changes()).toHaveLength(1);
  expect(await made.value("select run_limit_reason from runs where id = $1", [runId])).toBe(first.reason);

  let limit = first.to ?? bound;
  for (let known = 1; limit > 10; known++) {
    await endHold();
    const change = await another(known);
    expect(change).toMatchObject({ from: limit, reason: expect.stringMatching(/^fewer at once/) });
    limit = change.to ?? bound;
  }
  expect(limit).toBeGreaterThanOrEqual(8);

  room = { rows: 64, cache: 64 };
  await readings(3);
  const trimmed = (await changes()).length;
  await endHold();
  const grown = await another(trimmed);
  expect(grown).toMatchObject({
    from: limit,
    reason: expect.stringMatching(/^more at once: the engine's cache is \d+ % full/),
  });
  expect(grown.to).toBeGreaterThan(limit);
  // Never two changes within one hold.
  await readings(2);
  expect((await changes()).length).toBeLessThanOrEqual(1 + holds);
});

test("a server that only samples is read by its metrics, under the name of its row", async () => {
  const server = await startCompletionServer({
    answer: () => ({ tokens: [259], delayMs: 200 }),
    metrics: (waiting) =>
      `vllm:num_requests_running{m="x"} ${waiting}\nvllm:num_requests_waiting{m="x"} 2\nvllm:kv_cache_usage_perc{m="x"} 0.5\n`,
  });
  const made = await startRig();
  rig = made;
  const backend = { name: "openai-completions", endpoint: server.url };
  const runId = await made.launch(
    smokeConfig({
      kind: "evaluate",
      model: { name: "quickstart", warmStart: null },
      evaluation: { samples: 2_000 },
      dispatcher: { adaptive: true, bounds: { init: 64, run: bound, evaluate: 64 } },
      backend,
    }),
  );
  const name = gpuWorkerName({ runId: "", config: { backend: { endpoint: server.url, server: null, fleet: null } } });
  const load = await made.until("a reading", () => made.value("select load from gpu_workers where name = $1", [name]));
  expect(load).toMatchObject({ waiting: 2, cacheUse: 0.5, at: expect.any(Number) });
  await made.until("a limit", () => made.value("select run_limit from runs where id = $1", [runId]));
  await server.close();
});
