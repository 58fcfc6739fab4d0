/** Checkpoints with everything real: kept, exported so that others can load them, gone back to, begun with, and never used when damaged. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { StartedServing } from "@rolldeck/contracts/api/servings";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { checkLog } from "../chaos/check-log.ts";
import { type Ended, rolldeck, root } from "./command-line.ts";
import { transformersLogprobs } from "./exported-model.ts";
import { gpuWorkerKeyOf, type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

let stack: RealStack;
let folder: string;
let runId: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-checkpoints-"));
  stack = await startRealStack({});
  ({ runId } = await stack.rolldeck.launchRun({ ...tinyConfig(4), checkpoints: { every: 1, keep: 3 } }));
  expect(await stack.ended(runId)).toBe("completed");
  await putAway(runId);
});
afterAll(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const here = (...args: string[]): Promise<Ended> => rolldeck([...args, "--data-dir", stack.dataFolder]);
const putAway = (run: string) =>
  stack.until("its model is put away", async () =>
    stack.value("select model_boot_id is null from runs where id = $1", [run]),
  );
const pathOf = async (run: string, version: number): Promise<string> =>
  String(await stack.value("select path from checkpoints where run_id = $1 and version = $2", [run, version]));
const folderOf = (checkpoint: string) =>
  path.join(stack.dataFolder, "gpu-worker/checkpoints", checkpoint.replace(/^tinker:\/\//, ""));

/** What the worker says of rows under stored weights. */
async function score(checkpoint: string, rows: readonly (readonly number[])[]): Promise<(number | null)[][]> {
  const url = String(await stack.value("select url from gpu_workers where url is not null"));
  const backend = connectTinker({ url, apiKey: gpuWorkerKeyOf(stack.dataFolder), dialect: "rolldeck" });
  try {
    return (await backend.score?.({ path: checkpoint, rows, temperature: 1 })) ?? [];
  } finally {
    await backend.close();
  }
}
const Answer = z.object({
  prompt_token_ids: z.array(z.int()),
  choices: z.array(
    z.object({
      token_ids: z.array(z.int()),
      logprobs: z.object({ content: z.array(z.object({ logprob: z.number() })) }),
    }),
  ),
});

test("what is no longer kept is gone from the disk", async () => {
  const { checkpoints } = await stack.rolldeck.readCheckpoints(runId);
  expect(checkpoints.map(({ version }) => version)).toEqual([4, 3, 2]);
  expect(existsSync(folderOf(await pathOf(runId, 1)))).toBe(false);
  expect(await stack.value("select state from checkpoints where run_id = $1 and version = 1", [runId])).toBe("removed");
});

test("an export is a Hugging Face folder: transformers says of it what the worker says of the checkpoint", async () => {
  const file = path.join(folder, "model.tar");
  const written = await here("export", "checkpoint", runId, "--version", "3", "-o", file, "--json");
  expect(written, written.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(written.stdout)).toMatchObject({ id: `${runId}-v3`, file, bytes: readFileSync(file).length });
  const unpacked = path.join(folder, "unpacked");
  mkdirSync(unpacked);
  execFileSync("tar", ["-xf", file, "-C", unpacked]);
  const names = readdirSync(unpacked);
  expect(names).toEqual(expect.arrayContaining(["README.md", "config.json", "model.safetensors", "tokenizer.json"]));
  expect(names.filter((name) => /\.(?:bin|pt|pth|pkl|pickle)$/.test(name))).toEqual([]);
  expect(readFileSync(path.join(unpacked, "README.md"), "utf8")).toContain(runId);

  const rows = [Array.from({ length: 40 }, (_, at) => (at * 37) % 250), [5, 4, 3, 2, 1, 0]];
  const ours = await score(await pathOf(runId, 3), rows);
  const [none, onProgress] = [undefined, () => undefined];
  const python = await preparePython({ root, withTests: true, torch: none, env: process.env, onProgress });
  const theirs = await transformersLogprobs(python, unpacked, rows);
  const gaps = theirs.flatMap((row, at) =>
    row.map((value, token) => Math.abs(value - (ours[at]?.[token] ?? Number.NaN))),
  );
  expect(gaps).toHaveLength(39 + 5);
  expect(Math.max(...gaps)).toBeLessThan(1e-4);
});

test("a run goes back to a checkpoint and on from it; its later steps are a run of their own", async () => {
  const restored = await here("checkpoint", "restore", runId, "2", "--json");
  expect(restored, restored.stderr).toMatchObject({ code: 0 });
  const { supersededRunId } = JSON.parse(restored.stdout);
  expect(await stack.ended(runId)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
  const steps =
    "select array_agg(step order by step) from steps where run_id = $1 and purpose = 'train' and state = 'done'";
  expect(await stack.value(steps, [runId])).toEqual([1, 2, 3, 4]);
  expect(await stack.value(steps, [supersededRunId])).toEqual([3, 4]);
  const list = await here("checkpoint", "list", supersededRunId);
  expect(list.stdout).toContain(`from version 2 of ${runId}`);
});

test("a served checkpoint says what the worker's own weights say, to its key alone, until it is stopped", async () => {
  const started = await here("serving", "start", runId, "3", "--json");
  expect(started, started.stderr).toMatchObject({ code: 0 });
  const { servingId, path: base, key } = StartedServing.parse(JSON.parse(started.stdout));
  const ask = (authorization: string) =>
    fetch(`${stack.url}${base}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${authorization}`, "content-type": "application/json" },
      body: JSON.stringify({
        messages: [{ role: "user", content: "find a" }],
        ...{ temperature: 1, seed: 5, max_tokens: 12, logprobs: true, return_token_ids: true },
      }),
    });
  const answer = Answer.parse(await (await ask(key)).json());
  const [choice] = answer.choices;
  const ids = choice?.token_ids ?? [];
  const rows = [[...answer.prompt_token_ids, ...ids]];
  const [scored = []] = await score(await pathOf(runId, 3), rows);
  const ours = choice?.logprobs.content.map(({ logprob }) => logprob) ?? [];
  expect(ids.length).toBeGreaterThan(0);
  expect(ours).toHaveLength(ids.length);
  const gaps = scored.slice(-ids.length).map((value, at) => Math.abs((value ?? Number.NaN) - (ours[at] ?? Number.NaN)));
  expect(Math.max(...gaps)).toBeLessThan(1e-4);
  expect((await ask("rds_not-this-one")).status).toBe(401);
  expect((await here("serving", "list")).stdout).toContain(servingId);
  expect(await here("serving", "stop", servingId)).toMatchObject({ code: 0 });
  expect((await ask(key)).status).toBe(401);
});

test("a damaged checkpoint is neither exported nor begun with, and the refusal says so", async () => {
  const file = path.join(folderOf(await pathOf(runId, 4)), "model.safetensors");
  const bytes = readFileSync(file);
  const last = bytes.length - 1;
  bytes[last] = (bytes[last] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  const output = path.join(folder, "damaged.tar");
  const refused = await here("export", "checkpoint", runId, "--version", "4", "-o", output);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("damaged: model.safetensors") });
  expect(readdirSync(folder).filter((name) => name.startsWith("damaged"))).toEqual([]);
  const fork = (version: number) => ({
    ...tinyConfig(1),
    model: { name: "quickstart", warmStart: null, startFrom: { run: runId, version } },
  });
  await expect(stack.rolldeck.launchRun(fork(4))).rejects.toThrow(/model\.startFrom\.version: .*damaged/);
  const child = await stack.rolldeck.launchRun(fork(3));
  expect(await stack.ended(child.runId)).toBe("completed");
  const { parent } = await stack.rolldeck.readCheckpoints(child.runId);
  expect(parent).toMatchObject({ runId, version: 3, relation: "fork" });
});
