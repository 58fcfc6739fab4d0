/**
 * The GPU worker is killed in the one moment in which an update is half done: its gradient is there, its step is not. Afterwards the
 * run's weights are those of the same rows applied without any disturbance, and its checkpoint is a model that others can load.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { WorkerModel } from "@rolldeck/contracts/wire/tinker";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { forwardBackwardRows, stepModel, storedDatum } from "../../apps/worker/src/training/apply-rows.ts";
import { checkLog } from "../chaos/check-log.ts";
import { root } from "./command-line.ts";
import { exportModel, largestDifference, readTensors, transformersLogprobs } from "./exported-model.ts";
import { gpuWorkerKeyOf, type RealStack, startRealStack } from "./real-stack.ts";
import { learningConfig } from "./tiny-run.ts";

const steps = 3;
/** The update that is cut in two. */
const cut = 2;

let stack: RealStack;
let folder: string;
/** Holds the cut update; closed with the stack, which waits for every connection. */
let holder: pg.PoolClient | undefined;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-replay-"));
  stack = await startRealStack({});
});
afterAll(async () => {
  holder?.release(true);
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const lock = 4_477;
/** Between forward_backward and optim_step the worker notes the trainer's log-probabilities: there it waits for our lock. */
const holdUpdate = `
create function hold_update() returns trigger language plpgsql as $$
begin
  if (select step from steps where id = new.step_id) = ${cut} then perform pg_advisory_xact_lock(${lock}); end if;
  return new;
end $$;
create trigger hold_update before update on training_rows for each row execute function hold_update();`;

test("killed between forward_backward and optim_step, weights come out equal within 1e-6", async () => {
  const config = learningConfig(steps, { groupsPerStep: 24 });
  await stack.pool.query(holdUpdate);
  holder = await stack.pool.connect();
  await holder.query("select pg_advisory_lock($1)", [lock]);
  const { runId } = await stack.rolldeck.launchRun(config);
  await stack.until(
    "the update is half done",
    async () =>
      (await stack.value(
        "select count(*)::int from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
        [lock],
      )) === 1,
    120_000,
  );
  const server = {
    url: String(await stack.value("select url from gpu_workers where url is not null")),
    apiKey: gpuWorkerKeyOf(stack.dataFolder),
  };
  const modelId = String(await stack.value("select model_id from runs where id = $1", [runId]));
  const answer = await fetch(`${server.url}/ext/v1/models/${modelId}`, { headers: { "x-api-key": server.apiKey } });
  const state = WorkerModel.parse(await answer.json());
  expect(state.step).toBe(cut - 1);
  expect(state.accumulated_datums).toBeGreaterThan(0);
  await stack.kill("gpu-worker");
  await holder.query("select pg_advisory_unlock($1)", [lock]);
  holder.release();
  holder = undefined;
  expect(await stack.ended(runId, 120_000)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
  expect(
    await stack.value("select count(*)::int from events where run_id = $1 and type = 'model-adopted'", [runId]),
  ).toBe(2);

  const rows = await readTrainingRows(stack.pool, runId, 1, steps);
  expect(rows.map(({ step }) => step)).toEqual([1, 2, 3]);
  const trained = rows.map((step) => step.rows.filter(({ sent, advantage }) => sent && advantage !== 0).length);
  // The replayed step and the cut one both move the weights.
  expect(Math.min(...trained.slice(0, cut)), `rows with a gradient: ${trained}`).toBeGreaterThan(0);

  // The same rows on a second model that nobody disturbs.
  const backend = connectTinker({ ...server, dialect: "rolldeck" });
  const fence = { runId: "undisturbed", token: 1 };
  const model = await backend.createModel({ baseModel: config.model.name, seed: config.seed, fence });
  let seqId = 0;
  const nextSeq = async (): Promise<number> => ++seqId;
  const warm = z
    .object({ path: z.string() })
    .parse((await stack.pool.query("select path from checkpoints where run_id = $1 and version = 0", [runId])).rows[0]);
  await model.loadWeights(warm.path, { optimizer: false, seqId: await nextSeq() });
  const start = await model.saveWeights("start", await nextSeq());
  for (const [at, step] of rows.entries()) {
    await forwardBackwardRows(model, step.rows, config, nextSeq);
    await stepModel(model, step.rows, config, { step: at + 1, seqId: await nextSeq(), expectStep: at });
  }
  const undisturbed = await model.saveWeights("end", await nextSeq());
  const last = z
    .object({ path: z.string() })
    .parse(
      (await stack.pool.query("select path from checkpoints where run_id = $1 and version = $2", [runId, steps]))
        .rows[0],
    );
  const ours = readTensors(await exportModel(server, last.path, path.join(folder, "run")));
  const others = readTensors(await exportModel(server, undisturbed.path, path.join(folder, "undisturbed")));
  const before = readTensors(await exportModel(server, start.path, path.join(folder, "start")));
  expect(largestDifference(ours, before), "it was trained").toBeGreaterThan(1e-4);
  expect(largestDifference(ours, others)).toBeLessThanOrEqual(1e-6);

  // What we export is what we serve: transformers and the worker agree on every token.
  const sequences = rows
    .flatMap((step) => step.rows)
    .filter(({ sent }) => sent)
    .slice(0, 8);
  const ids = sequences.map(({ tokens }) => tokens);
  const data = sequences.map(storedDatum);
  const { logprobs } = await model.forward(data, { name: "cross_entropy", config: {} }, await nextSeq());
  const python = await preparePython({
    root,
    withTests: true,
    torch: undefined,
    env: process.env,
    onProgress: () => undefined,
  });
  const theirs = await transformersLogprobs(python, path.join(folder, "run"), ids);
  const gaps = theirs.flatMap((row, at) =>
    row.map((value, token) => Math.abs(value - (logprobs[at]?.[token] ?? Number.NaN))),
  );
  expect(gaps.length).toBeGreaterThan(100);
  expect(Math.max(...gaps)).toBeLessThan(1e-4);
  await backend.close();
});
