import { Servings, StartedServing } from "@rolldeck/contracts/api/servings";
import { seedCheckpoint } from "@rolldeck/db/testing/seed-checkpoint";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { checkpointFacts } from "@rolldeck/db/training/checkpoint-facts";
import { outOfUse, takeOutOfUse } from "@rolldeck/db/training/remove-checkpoints";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { answerLogprobs, answerTokens, type StoredFiles, startStoredFiles } from "../../testing/stored-files.ts";
import { mostAtWork } from "./served-endpoint.ts";

let api: TestApi;
let stored: StoredFiles;
let runId: string;
let serving: StartedServing;
beforeAll(async () => {
  stored = await startStoredFiles();
  api = await startTestApi({ gpuWorker: { url: stored.url, apiKey: stored.apiKey } });
  runId = await seedRun(api.database.pool, { status: "stopped", config: { model: { name: "quickstart" } } });
  for (const version of [1, 2, 3])
    await seedCheckpoint(api.database.pool, runId, {
      version,
      name: `v${version}`,
      path: `tinker://m/weights/v${version}`,
      bytes: 1,
    });
  serving = StartedServing.parse(await (await start(2)).json());
});
afterAll(async () => {
  await api.close();
  await stored.close();
});
beforeEach(() => {
  stored.state = "whole";
  stored.samples.length = 0;
});

const start = (version: number) => api.fetch(`/api/v1/checkpoints/${runId}-v${version}/serve`, jsonPost({}));
const listed = async () => Servings.parse(await (await api.fetch("/api/v1/servings")).json());
const ask = (path: string, body: unknown, key = serving.key) =>
  fetch(`${api.url}${serving.path}${path}`, jsonPost(body, { authorization: `Bearer ${key}` }));
const Failure = z.object({ error: z.object({ message: z.string(), type: z.string(), param: z.string().nullable() }) });
const failed = async (response: Response) => ({
  status: response.status,
  ...Failure.parse(await response.json()).error,
});
const Answer = z.looseObject({
  prompt_token_ids: z.array(z.int()),
  choices: z.array(
    z.looseObject({
      logprobs: z.looseObject({ content: z.array(z.object({ logprob: z.number() })).optional() }).nullable(),
    }),
  ),
});
const chat = { messages: [{ role: "user", content: "find a" }] };

it("says in OpenAI's words that this server knows no GPU worker", async () => {
  const without = await startTestApi();
  try {
    const response = await fetch(`${without.url}/api/serve/nosuchone1/v1/models`);
    expect(await failed(response)).toMatchObject({ status: 404, type: "not_found_error" });
  } finally {
    await without.close();
  }
});

describe("a served checkpoint", () => {
  it("answers a chat with text, token ids and logprobs", async () => {
    const response = await ask("/chat/completions", {
      ...chat,
      logprobs: true,
      return_token_ids: true,
      temperature: 0,
      max_tokens: 7,
      seed: 3,
    });
    expect(response.status).toBe(200);
    const answer = Answer.parse(await response.json());
    expect(answer).toMatchObject({ object: "chat.completion", usage: { completion_tokens: 3 } });
    const [choice] = answer.choices;
    expect(choice).toMatchObject({
      message: { role: "assistant", content: "hi" },
      finish_reason: "stop",
      token_ids: answerTokens,
    });
    expect(choice?.logprobs?.content?.map(({ logprob }) => logprob)).toEqual(answerLogprobs);
    // The template's own prompt, and its own end.
    expect(answer.prompt_token_ids).toEqual([256, ...Buffer.from("find a"), 259, 257]);
    expect(stored.samples).toEqual([
      {
        model_path: "tinker://m/weights/v2",
        prompt: { chunks: [{ type: "encoded_text", tokens: answer.prompt_token_ids }] },
        num_samples: 1,
        sampling_params: {
          max_tokens: 7,
          temperature: 0,
          top_p: 1,
          top_k: -1,
          seed: 3,
          stop: expect.arrayContaining([259]),
        },
      },
    ]);
  });

  it("completes ids as they are, as runs over completions ask for them", async () => {
    const body = {
      prompt: [1, 2, 3],
      max_tokens: 4,
      logprobs: 1,
      return_token_ids: true,
      skip_special_tokens: false,
      stop_token_ids: [259],
    };
    const { choices } = Answer.parse(await (await ask("/completions", body)).json());
    expect(choices).toMatchObject([{ token_ids: answerTokens, logprobs: { token_logprobs: answerLogprobs } }]);
    expect(stored.samples).toMatchObject([
      { prompt: { chunks: [{ tokens: [1, 2, 3] }] }, sampling_params: { stop: [259] } },
    ]);
  });

  it("lists itself as a model", async () => {
    const response = await fetch(`${api.url}${serving.path}/models`, {
      headers: { authorization: `Bearer ${serving.key}` },
    });
    expect(await response.json()).toMatchObject({ object: "list", data: [{ id: serving.servingId }] });
  });

  it("opens to its own key alone", async () => {
    for (const key of [api.ownerToken, "rds_wrong", "", "x".repeat(300)])
      expect(await failed(await ask("/chat/completions", chat, key))).toMatchObject({
        status: 401,
        type: "authentication_error",
      });
    const elsewhere = await fetch(`${api.url}/api/v1/runs`, { headers: { authorization: `Bearer ${serving.key}` } });
    expect(elsewhere.status).toBe(401);
    const other = StartedServing.parse(await (await start(3)).json());
    expect((await ask("/chat/completions", chat, other.key)).status).toBe(401);
    await api.fetch(`/api/v1/servings/${other.servingId}/stop`, jsonPost({}));
    expect(stored.samples).toEqual([]);
  });

  it.each([
    ["/chat/completions", { messages: [] }, "messages"],
    ["/chat/completions", { ...chat, tools: [] }, "tools"],
    ["/chat/completions", { ...chat, stop: "x" }, "stop"],
    ["/chat/completions", { ...chat, temperature: 9 }, "temperature"],
    ["/completions", { prompt: ["a", "b"] }, "prompt"],
    ["/completions", { prompt: "a", logprobs: 2 }, "logprobs"],
    ["/completions", { prompt: "a", stop: ["x"], stop_token_ids: [1] }, "stop"],
  ])("%s with %j is refused, and the field named", async (path, body, param) => {
    const { status, ...error } = await failed(await ask(path, body));
    expect([status, error.param?.split(/[.[]/u)[0]]).toEqual([400, param]);
    expect(stored.samples).toEqual([]);
  });

  it("says so in OpenAI's words where there is nothing, or what came is no JSON", async () => {
    expect(await failed(await ask("/embeddings", {}))).toMatchObject({ status: 404 });
    const authorization = `Bearer ${serving.key}`;
    const broken = await fetch(`${api.url}${serving.path}/completions`, {
      method: "POST",
      headers: { authorization },
      body: "{",
    });
    expect(await failed(broken)).toMatchObject({ status: 400, message: "The body is not JSON." });
  });

  it("says in the same words what is too large", async () => {
    const body = { prompt: "a".repeat(17 * 1024 * 1024) };
    expect(await failed(await ask("/completions", body))).toMatchObject({ status: 413, type: "invalid_request_error" });
    const messages = Array.from({ length: 3 }, () => ({ role: "user", content: "a".repeat(1_500_000) }));
    expect(await failed(await ask("/chat/completions", { messages }))).toMatchObject({
      status: 400,
      param: "messages",
      message: expect.stringContaining("4000000 characters together"),
    });
    expect(stored.samples).toEqual([]);
  });

  it("works at so many requests at once, refuses what is beyond, and takes more when they are done", async () => {
    let release = () => {};
    stored.held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const atWork = Array.from({ length: mostAtWork }, () => ask("/chat/completions", chat));
    await expect.poll(() => stored.samples.length, { timeout: 60_000 }).toBe(mostAtWork);
    expect(await failed(await ask("/chat/completions", chat))).toMatchObject({ status: 429, type: "rate_limit_error" });
    release();
    stored.held = null;
    expect((await Promise.all(atWork)).map(({ status }) => status)).toEqual(atWork.map(() => 200));
    expect((await ask("/chat/completions", chat)).status).toBe(200);
  });

  it("stays among the run's checkpoints as long as it is served", async () => {
    const { pool } = api.database;
    const facts = await checkpointFacts(pool, runId, null);
    expect(facts.map(({ version, served }) => [version, served])).toEqual([
      [3, false],
      [2, true],
      [1, false],
    ]);
    await pool.query("update runs set model_id = 'm', ended_at = now() where id = $1", [runId]);
    await takeOutOfUse(pool, { kind: "ended", runId, modelId: "m", claim: 0 }, [1, 2]);
    expect((await outOfUse(pool, runId)).map(({ version }) => version)).toEqual([1]);
  });
});

describe("serving", () => {
  it("keeps no key, and shows it once", async () => {
    expect(JSON.stringify(await listed())).not.toContain("rds_");
    const { rows } = await api.database.pool.query("select s::text as row from servings s");
    expect(JSON.stringify(rows)).not.toContain(serving.key);
    expect(await listed()).toMatchObject([
      { servingId: serving.servingId, checkpoint: `${runId}-v2`, startedBy: "the owner" },
    ]);
  });

  it("is refused where the files are damaged, or there is no such checkpoint", async () => {
    stored.state = "damaged";
    expect((await start(3)).status).toBe(409);
    stored.state = "whole";
    expect((await start(7)).status).toBe(404);
  });

  it("leaves no key behind under an Idempotency-Key, however the procedure's name is written", async () => {
    const { pool } = api.database;
    for (const name of ["servings.start", "servings%2Estart", "servings%2estart"]) {
      const body = jsonPost({ id: `${runId}-v3` }, { "idempotency-key": name });
      const response = await api.fetch(`/api/trpc/${name}`, body);
      expect(response.status).toBe(200);
      const started = z.object({ result: z.object({ data: StartedServing }) }).parse(await response.json()).result.data;
      const { rows } = await pool.query("select * from idempotency_keys");
      expect(JSON.stringify(rows)).not.toContain(started.key);
      await api.fetch(`/api/v1/servings/${started.servingId}/stop`, jsonPost({}));
    }
  });

  it("is bounded, however many ask at once", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => start(3)));
    const made = answers.filter(({ status }) => status === 201);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(13);
    const started = await Promise.all(made.map(async (answer) => StartedServing.parse(await answer.json())));
    expect(started).toHaveLength(7);
    for (const { servingId } of started) await api.fetch(`/api/v1/servings/${servingId}/stop`, jsonPost({}));
  });

  it("stops for good, and the log says who began and who ended it", async () => {
    const stop = () => api.fetch(`/api/v1/servings/${serving.servingId}/stop`, jsonPost({}));
    expect(await (await stop()).json()).toEqual([]);
    expect((await stop()).status).toBe(200);
    expect((await ask("/chat/completions", chat)).status).toBe(401);
    expect((await api.fetch("/api/v1/servings/nosuchone1/stop", jsonPost({}))).status).toBe(404);
    const { rows } = await api.database.pool.query(
      "select body - 'type' as body from events where run_id = $1 and type = 'checkpoint-served' order by seq",
      [runId],
    );
    const ofFirst = rows.map(({ body }) => body).filter(({ version }) => version === 2);
    expect(ofFirst).toEqual([true, false].map((served) => ({ version: 2, served, by: "the owner" })));
    // Each of the others once and once, however many asked at once.
    expect(rows.filter(({ body }) => body.served)).toHaveLength(rows.length / 2);
  });
});
