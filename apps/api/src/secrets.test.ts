/** Secrets stay where they were put: in no log line, no answer, and in the database only as hashes. */
import { SignInCode } from "@rolldeck/contracts/api/system";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { jsonPost, startTestApi, type TestApi } from "../testing/start-api.ts";

const lines: string[] = [];
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({}, pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }));
});
afterAll(() => api.close());

it("a request that fails by our own fault is logged without what it carried, and answered without its cause", async () => {
  const made = SignInCode.parse(await (await api.fetch("/api/v1/sign-in-codes", { method: "POST" })).json());
  const cookie = (await fetch(`${api.url}${made.path}`, { redirect: "manual" })).headers.get("set-cookie") ?? "";
  const session = /=([^;]+)/.exec(cookie)?.[1] ?? "";
  await api.database.pool.query(`alter table runs rename to runs_away`);
  const answers = [
    await api.fetch("/api/v1/runs?query=canary-query"),
    await api.fetch(
      "/api/v1/runs",
      jsonPost({
        config: { taskSets: [{ name: "key-chain" }], agent: { maxContextTokens: 2048 }, name: "canary-body" },
      }),
    ),
    await fetch(`${api.url}/api/trpc/runs.list?input=${encodeURIComponent("{}")}`, { headers: { cookie } }),
  ];
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  await api.database.pool.query(`alter table runs_away rename to runs`);
  expect(answers.map((answer) => answer.status)).toEqual([500, 500, 500]);
  for (const text of texts) expect(text).not.toMatch(/runs_away|relation|select|\.ts:/);
  const log = lines.join("");
  for (const answer of answers.slice(0, 2)) expect(log).toContain(answer.headers.get("x-request-id") ?? "none");
  const stored = await api.database.pool.query(
    `select (select json_agg(s) from sessions s)::text || (select json_agg(c) from sign_in_codes c)::text as text`,
  );
  expect(session.length).toBeGreaterThan(20);
  for (const secret of [api.ownerToken, made.code, session, "canary-query", "canary-body"]) {
    expect(log).not.toContain(secret);
    expect(texts.join("")).not.toContain(secret);
    expect(stored.rows[0].text).not.toContain(secret);
  }
});
