/** A served checkpoint that streams, read by OpenAI's own client. */

import { openAiClient } from "@rolldeck/backends/testing/openai-client";
import { StartedServing } from "@rolldeck/contracts/api/servings";
import { seedCheckpoint } from "@rolldeck/db/testing/seed-checkpoint";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { answerLogprobs, answerTokens, type StoredFiles, startStoredFiles } from "../../testing/stored-files.ts";
import { mostAtWork } from "./served-endpoint.ts";

let api: TestApi;
let stored: StoredFiles;
let client: ReturnType<typeof openAiClient>;
let runId: string;
beforeAll(async () => {
  stored = await startStoredFiles();
  api = await startTestApi({ gpuWorker: { url: stored.url, apiKey: stored.apiKey } });
  const { pool } = api.database;
  runId = await seedRun(pool, { status: "stopped", config: { model: { name: "quickstart" } } });
  await seedCheckpoint(pool, runId, { version: 1, name: "v1", path: "tinker://m/weights/v1", bytes: 1 });
  client = clientOf(await serve());
});
afterAll(async () => {
  await api.close();
  await stored.close();
});
beforeEach(() => {
  stored.state = "whole";
  stored.afterFirst = null;
  stored.left = 0;
});

const serve = async () =>
  StartedServing.parse(await (await api.fetch(`/api/v1/checkpoints/${runId}-v1/serve`, jsonPost({}))).json());
const clientOf = ({ path, key }: StartedServing) => openAiClient(`${api.url}${path}`, key);
const messages = [{ role: "user" as const, content: "find a" }];
const held = <T>() => {
  let release: (value: T) => void = () => undefined;
  const until = new Promise<T>((resolve) => {
    release = resolve;
  });
  return { until, release };
};

describe("a served checkpoint that streams", () => {
  it("says each token when it is there, with its logprob and id, and the usage at the end", async () => {
    const { until, release } = held<"go on">();
    stored.afterFirst = until;
    const ids = { return_token_ids: true };
    const stream = await client.chat.completions.create({
      ...ids,
      model: "any",
      messages,
      logprobs: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = stream[Symbol.asyncIterator]();
    // The rest is held back until this one was read.
    const { value: first } = await chunks.next();
    expect(first).toMatchObject({
      object: "chat.completion.chunk",
      prompt_token_ids: expect.arrayContaining([256]),
      choices: [
        {
          index: 0,
          delta: { role: "assistant", content: "h" },
          finish_reason: null,
          token_ids: answerTokens.slice(0, 1),
          logprobs: { content: [{ token: "h", logprob: answerLogprobs[0], bytes: [104] }] },
        },
      ],
    });
    release("go on");
    const rest = [];
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) rest.push(next.value);
    expect(rest).toMatchObject([
      { choices: [{ delta: { content: "i" }, token_ids: answerTokens.slice(1) }] },
      { choices: [{ delta: {}, finish_reason: "stop" }] },
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } },
    ]);
    expect(rest[0]?.choices[0]?.logprobs?.content?.map(({ logprob }) => logprob)).toEqual(answerLogprobs.slice(1));
    expect(stored.left).toBe(0);
  });

  it("completes prompts in pieces that add up to the answer that comes whole", async () => {
    const ask = { model: "any", prompt: "find a", logprobs: 1 };
    const whole = await client.completions.create(ask);
    const pieces = [];
    for await (const piece of await client.completions.create({ ...ask, stream: true })) pieces.push(piece.choices[0]);
    expect(pieces.map((piece) => piece?.text).join("")).toBe(whole.choices[0]?.text);
    expect(pieces.at(-1)?.finish_reason).toBe("stop");
    for (const key of ["tokens", "token_logprobs", "text_offset"] as const)
      expect(pieces.flatMap<string | number>((piece) => piece?.logprobs?.[key] ?? [])).toEqual(
        whole.choices[0]?.logprobs?.[key],
      );
  });

  it("ends the sample on the worker when its reader leaves, and has room for others then", async () => {
    stored.afterFirst = held<"go on">().until;
    const open = () => client.chat.completions.create({ model: "any", messages, stream: true });
    const streams = await Promise.all(Array.from({ length: mostAtWork }, open));
    await expect(open()).rejects.toMatchObject({ status: 429 });
    for (const stream of streams) stream.controller.abort();
    await expect.poll(() => stored.left, { timeout: 60_000 }).toBe(mostAtWork);
    stored.afterFirst = null;
    const said: string[] = [];
    for await (const { choices } of await open()) said.push(choices[0]?.delta.content ?? "");
    expect(said.join("")).toBe("hi");
  });

  it("says what goes wrong in the middle, and never that it is done", async () => {
    const { until, release } = held<"give up">();
    stored.afterFirst = until;
    const stream = await client.chat.completions.create({ model: "any", messages, stream: true });
    const read = async () => {
      for await (const _ of stream) release("give up");
    };
    await expect(read()).rejects.toThrow("The GPU worker does not answer now.");
  });

  it("ends when its serving is stopped, and the sample with it", async () => {
    stored.afterFirst = held<"go on">().until;
    const serving = await serve();
    const stream = await clientOf(serving).chat.completions.create({ model: "any", messages, stream: true });
    const read = async () => {
      for await (const _ of stream) await api.fetch(`/api/v1/servings/${serving.servingId}/stop`, jsonPost({}));
    };
    await expect(read()).rejects.toThrow("The serving was stopped.");
    await expect.poll(() => stored.left, { timeout: 60_000 }).toBe(1);
  });

  it("says what can't begin at all by its status", async () => {
    stored.state = "gone";
    const asked = client.chat.completions.create({ model: "any", messages, stream: true });
    await expect(asked).rejects.toMatchObject({ status: 503, message: expect.stringContaining("can't be loaded") });
  });
});
