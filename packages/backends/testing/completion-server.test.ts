import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { type CompletionAnswer, startCompletionServer } from "./completion-server.ts";

async function ask(answer: CompletionAnswer, path: string, body: object) {
  const server = await startCompletionServer({ answer: () => answer });
  const response = await fetch(server.url + path, { method: "POST", body: JSON.stringify(body) });
  const text = await response.text();
  const [seen] = server.asks;
  await server.close();
  return { text, status: response.status, seen };
}

test("completions: ids and logprobs, the prompt as it came", async () => {
  const body = { model: "m", prompt: [1, 2, 3], max_tokens: 5, return_token_ids: true, logprobs: 1 };
  const { text, seen } = await ask({ tokens: [7, 8] }, "/v1/completions", body);
  expect(JSON.parse(text)).toMatchObject({
    choices: [
      {
        prompt_token_ids: [1, 2, 3],
        token_ids: [7, 8],
        logprobs: { token_logprobs: [-0.5, -0.5] },
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  });
  expect(seen).toMatchObject({ promptLength: 3, maxTokens: 5 });
  expect(seen?.promptTokens()).toEqual([1, 2, 3]);
});

test("generate and chat, streamed too", async () => {
  const generate = { request_id: "r1", token_ids: [4, 5], sampling_params: { max_tokens: 2 } };
  const { text } = await ask({ tokens: [9] }, "/inference/v1/generate", generate);
  expect(JSON.parse(text)).toMatchObject({
    request_id: "r1",
    choices: [{ token_ids: [9], logprobs: { content: [{ logprob: -0.5 }] } }],
  });
  const chat = { messages: [{ role: "user", content: "hi" }], stream: true };
  const streamed = await ask(
    { content: "hello", calls: [{ name: "f", arguments: "{}" }] },
    "/v1/chat/completions",
    chat,
  );
  const chunks = streamed.text.split("\n\n").filter((line) => line.startsWith("data: {"));
  const deltas = chunks.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta ?? {});
  expect(deltas.map((delta) => delta.content ?? "").join("")).toBe("hello");
  expect(streamed.text.endsWith("data: [DONE]\n\n")).toBe(true);
});

test("as a process of its own it says where it is and ends with its input", async () => {
  const child = spawn(process.execPath, ["--import", "tsx", `${import.meta.dirname}/completion-server.ts`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [first] = await Promise.all([
    new Promise<string>((resolve) => child.stdout.once("data", (data) => resolve(String(data)))),
  ]);
  const { url } = JSON.parse(first);
  const response = await fetch(`${url}/v1/models`);
  expect(response.status).toBe(200);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin.end();
  expect(await ended).toBe(0);
});
