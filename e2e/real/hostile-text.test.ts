/**
 * Faults 48, 50 and 62: whatever a model can say is stored, read back and trained. The real stack with a scripted policy that
 * writes zero bytes, broken UTF-8, page code and 20 KB of noise; and totals that no double can hold.
 */
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkLog } from "../chaos/check-log.ts";
import { rolldeck } from "./command-line.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

const script = "</script><script>document.title=1</script><img src=x onerror=alert(1)>";
const bytes = (...parts: (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => Buffer.from(typeof part === "string" ? [...Buffer.from(part)] : part)));
/** A lone high surrogate as a careless encoder writes it: no UTF-8. */
const surrogate = [0xed, 0xa0, 0x80];

/** First turns, one per sample of a group of eight; the second turn ends the rollout with the same poison in its answer. */
const first: readonly Uint8Array[] = [
  bytes('[get(k="a\0b")]'),
  bytes('[get(k="', surrogate, '")]'),
  bytes('[get(k="\\x00\\ud800\\udc00\\udfff")]'),
  bytes(`[get(k="${script}")]`),
  bytes(Array.from({ length: 20_000 }, (_, at) => (at * 7919) % 256)),
  bytes('[get(k="=1+1", \0="x")]'),
  bytes("\0\0\0", surrogate, script),
  bytes(`[${"a".repeat(200)}\0(k="x")]`, "[__proto__(k='x')]"),
];
const last = bytes('[finish(answer="', script, "\0", surrogate, '\\x00\\ud800")]');

let gpu: Awaited<ReturnType<typeof startScriptedWorker>>;
let stack: RealStack;
let said = 0;
beforeAll(async () => {
  gpu = await startScriptedWorker({
    policy: ({ prompt }) => (prompt.split("<|assistant|>").length > 2 ? last : (first[said++ % first.length] ?? last)),
  });
  stack = await startRealStack({
    only: "api,worker",
    env: { ROLLDECK_GPU_WORKER_URL: gpu.url, ROLLDECK_GPU_WORKER_KEY: gpu.apiKey },
  });
});
afterAll(async () => {
  await stack?.stop();
  await gpu?.close();
});

const asOwner = (place: string): Promise<Response> =>
  fetch(`${stack.url}/api/v1${place}`, { headers: { authorization: `Bearer ${stack.token}` } });

test("a run whose policy says the worst completes, and every word of it is readable", async () => {
  const tiny = tinyConfig(1);
  const { runId } = await stack.rolldeck.launchRun({
    ...tiny,
    name: "</script> =1+1",
    tags: ["<b>"],
    agent: { ...tiny.agent, maxContextTokens: 32_768, sampling: { temperature: 1, maxTokensPerTurn: 24_000 } },
    algorithm: { ...tiny.algorithm, groupsPerStep: 2, groupSize: 8 },
  });
  expect(await stack.ended(runId)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
  expect(
    await stack.value("select count(*)::int from rollouts where run_id = $1 and outcome = 'failed'", [runId]),
  ).toBe(0);

  const { groups } = await stack.rolldeck.readMatrix({ runId, step: 1 });
  const ids = groups.flatMap(({ cells }) => cells.map(({ rolloutId }) => rolloutId));
  expect(ids).toHaveLength(16);
  const told: string[] = [];
  const sampled: number[][] = [];
  for (const rolloutId of ids) {
    for (const place of [`/rollouts/${rolloutId}`, `/rollouts/${rolloutId}/turns`, `/rollouts/${rolloutId}/tokens`]) {
      const answer = await asOwner(place);
      expect(answer.status, place).toBe(200);
      expect(answer.headers.get("content-type"), place).toMatch(/^application\/json/);
      const text = await answer.text();
      // Strict JSON, and every text in it is of whole characters.
      JSON.parse(text, (_key, value: unknown) => {
        if (typeof value === "string") expect(value, place).not.toMatch(/\p{Cs}/u);
        return value;
      });
      told.push(text);
    }
    const page = await stack.rolldeck.readTokens({ rolloutId, end: 16_384 });
    expect(page.texts.some((text) => /\p{Cs}/u.test(text))).toBe(false);
    sampled.push(page.ids.filter((_, at) => page.origins[at] === "sampled"));
  }
  // Shown as text, with stand-ins where a character can't be.
  expect(told.join("\n")).toContain("</script><script>document.title=1</script>");
  expect(told.join("\n")).toContain("\u2400");
  expect(told.join("\n")).toContain("\ufffd");
  // What was sampled is kept to the byte, whatever its text looks like.
  for (const words of first.slice(0, 4)) {
    expect(sampled.some((tokens) => words.every((byte, at) => tokens[at] === byte))).toBe(true);
  }
  expect(sampled.some((tokens) => tokens.length > 16_000)).toBe(true);

  const shown = await rolldeck(["rollout", "show", ids[0] ?? "", "--data-dir", stack.dataFolder]);
  expect(shown.code).toBe(0);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that none is left is what is tested
  expect(shown.stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
});

test("totals past 2^53 come out exact, as decimal text", async () => {
  const { items } = await stack.rolldeck.listRuns({});
  const runId = items[0]?.runId ?? "";
  for (const total of ["3000000000", "9007199254740993", "9223372036854775807"]) {
    await stack.pool.query("update runs set sampled_tokens = $2 where id = $1", [runId, total]);
    expect((await stack.rolldeck.getRun(runId)).sampledTokens).toBe(total);
    expect((await stack.rolldeck.listRuns({})).items[0]?.sampledTokens).toBe(total);
    expect(await (await asOwner(`/runs/${runId}`)).text()).toContain(`"sampledTokens":"${total}"`);
    const { stdout } = await rolldeck(["run", "list", "--json", "--data-dir", stack.dataFolder]);
    expect(stdout).toContain(`"sampledTokens":"${total}"`);
  }
});
