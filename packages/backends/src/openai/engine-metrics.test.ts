/** What servers that only sample tell of their engines, over real HTTP. */
import { afterEach, describe, expect, test } from "vitest";
import { closeAll, connect, fine, serve } from "../../testing/connected-sampler.ts";
import { bareEndpoint } from "./endpoint.ts";
import { EngineMetrics } from "./engine-metrics.ts";
import { engineReading } from "./engine-reading.ts";

afterEach(closeAll);

const vllm = (running: number, waiting: number, cache: number, name = "kv_cache_usage_perc", engine = 0) =>
  [
    "# TYPE vllm:num_requests_running gauge",
    `vllm:num_requests_running{engine="${engine}",model_name="m"} ${running}.0`,
    `vllm:num_requests_waiting{engine="${engine}",model_name="m"} ${waiting}.0`,
    `vllm:num_requests_waiting_by_reason{engine="${engine}",reason="capacity"} 77`,
    `vllm:${name}{engine="${engine}",model_name="m"} ${cache}`,
    "",
  ].join("\n");
const sglang = "sglang:num_running_reqs 7\nsglang:num_queue_reqs 2\nsglang:token_usage 0.25\n";

describe("engineReading", () => {
  test.each([
    ["vLLM", vllm(12, 3, 0.5), { running: 12, waiting: 3, cacheUse: 0.5 }],
    ["an older vLLM", vllm(1, 0, 0.125, "gpu_cache_usage_perc"), { running: 1, waiting: 0, cacheUse: 0.125 }],
    ["several engines", vllm(12, 3, 0.5) + vllm(2, 4, 0.75, undefined, 1), { running: 14, waiting: 7, cacheUse: 0.75 }],
    ["SGLang", sglang, { running: 7, waiting: 2, cacheUse: 0.25 }],
    ["one that does not tell of its cache", "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n", null],
    ["one that does not know its cache's use", sglang.replace("0.25", "NaN"), null],
    ["another program", "process_cpu_seconds_total 5\n", null],
    ["no such text", "<html>not found</html>", null],
  ])("of %s", (_, text, reading) => {
    expect(engineReading(text)).toEqual(reading);
  });
});

test.each(["openai-completions", "vllm-generate"] as const)("%s tells what its engines bear together", async (kind) => {
  const one = await serve(() => fine, { metrics: () => vllm(12, 3, 0.5) });
  const other = await serve(() => fine, { metrics: () => sglang });
  const silent = await serve(() => fine);
  const { backend } = connect(kind, [`${one.url}/v1`, other.url, silent.url, "http://127.0.0.1:1"]);
  expect(await backend.load?.()).toEqual({ running: 19, waiting: 5, cacheUse: 0.5 });
});

test("nobody asks a chat endpoint, which may be a hosted one", () => {
  expect(connect("openai-chat", ["http://127.0.0.1:1"]).backend.load).toBeUndefined();
});

test("a server without metrics is left alone for a minute, one that broke is asked again at once", async () => {
  let asked = 0;
  let text = "nothing of ours 1\n";
  const server = await serve(() => fine, {
    metrics: () => {
      asked++;
      return text;
    },
  });
  let now = 0;
  const metrics = new EngineMetrics(bareEndpoint("openai-completions", server.url), () => now);
  expect(await metrics.read()).toBeNull();
  text = sglang;
  now = 59_999;
  expect(await metrics.read()).toBeNull();
  expect(asked).toBe(1);
  now = 60_000;
  expect(await metrics.read()).toMatchObject({ running: 7 });
  await server.close();
  expect(await metrics.read()).toBeNull();
  await expect(metrics.read(AbortSignal.abort(new Error("no time")))).rejects.toThrow("no time");
  await metrics.close();
});
