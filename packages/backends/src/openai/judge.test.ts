import { afterEach, describe, expect, test } from "vitest";
import { type AnswerScript, type CompletionServer, startCompletionServer } from "../../testing/completion-server.ts";
import { never } from "../../testing/conformance.ts";
import { bareEndpoint, type Endpoint } from "./endpoint.ts";
import { createJudge, type OpenedJudge } from "./judge.ts";

let server: CompletionServer;
let judge: OpenedJudge | null = null;
afterEach(async () => {
  await judge?.close();
  await server?.close();
  judge = null;
});

async function open(answer: AnswerScript, changes: Partial<Endpoint> = {}): Promise<OpenedJudge> {
  server = await startCompletionServer({ answer });
  const endpoint = {
    ...bareEndpoint("openai-chat", server.url),
    model: "judge-model",
    judge: true,
    firstPauseMs: 5,
    ...changes,
  };
  judge = createJudge({ endpoint });
  return judge;
}
const question = [{ role: "user" as const, content: "Is 4 right?" }];

describe("a judge", () => {
  test.each([true, false])("answers in words, without its thinking (streamed: %s)", async (stream) => {
    const asked = await open(() => ({ content: "yes, it is", reasoning: "no no no" }), { stream });
    expect(await asked.ask(question, never())).toBe("yes, it is");
    expect(server.asks[0]?.body).toMatchObject({ model: "judge-model", temperature: 0, messages: question });
  });

  test("is asked again after a failure, like any other model", async () => {
    const asked = await open(({ turn }) => (turn < 2 ? { status: 503 } : { content: "no" }));
    expect(await asked.ask(question, never())).toBe("no");
  });

  test("that gives no answer is a verifier's failure, never a verdict", async () => {
    const refused = await open(() => ({ status: 401, body: { error: { message: "key" } } }));
    await expect(refused.ask(question, never())).rejects.toMatchObject({
      boundary: "verifier",
      code: "judge_unauthorised",
    });
    await refused.close();
    await server.close();
    const silent = await open(() => ({ content: "  " }));
    await expect(silent.ask(question, never())).rejects.toMatchObject({ boundary: "verifier", code: "judge_silent" });
  });

  test("a question can be called off", async () => {
    const asked = await open(() => ({ hang: true }));
    const stop = new AbortController();
    const asking = asked.ask(question, stop.signal);
    stop.abort(new Error("the stage's time is over"));
    await expect(asking).rejects.toThrow("the stage's time is over");
  });

  test("needs a model's name and the chat wire", () => {
    const chat = bareEndpoint("openai-chat", "http://x");
    expect(() => createJudge({ endpoint: chat })).toThrow(/name of its model/);
    expect(() => createJudge({ endpoint: { ...bareEndpoint("vllm-generate", "http://x"), model: "m" } })).toThrow(
      /openai-chat/,
    );
  });
});
