import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { expect, it } from "vitest";
import { startCompletionServer } from "../../testing/completion-server.ts";
import { KeptAliveServer } from "./kept-alive-server.ts";
import { promptBody } from "./prompt-body.ts";

it.each([3, 40_000])("a prompt of %i ids arrives as one JSON body of a known length", async (count) => {
  const ids = Array.from({ length: count }, (_, at) => (at * 7919) % 151_936);
  const prompt = fixedPrompt(ids);
  const body = promptBody('{"prompt":', prompt, ',"max_tokens":4,"model":"\u00e9"}');
  expect(Array.isArray(body)).toBe(count > 10_000);
  const server = await startCompletionServer({ answer: () => ({ tokens: [1], logprobs: [0] }) });
  const client = new KeptAliveServer({ url: server.url, headers: {} });
  try {
    // Twice: a body is sent again as it is.
    for (let sent = 0; sent < 2; sent++) {
      const answer = await client.send({ method: "POST", path: "/v1/completions", body });
      await answer.body.text();
      expect(answer.status).toBe(200);
    }
    expect(server.asks.map((ask) => JSON.parse(ask.promptJson.toString()))).toEqual([ids, ids]);
    expect(server.asks.map((ask) => ask.headers["transfer-encoding"])).toEqual([undefined, undefined]);
  } finally {
    await client.close();
    await server.close();
  }
});
