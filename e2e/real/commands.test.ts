/** The main walk from the command line, against everything real. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type Ended, rolldeck } from "./command-line.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyYaml } from "./tiny-run.ts";

let stack: RealStack;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-commands-"));
  stack = await startRealStack({});
});
afterAll(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const here = (...args: string[]): Promise<Ended> => rolldeck([...args, "--data-dir", stack.dataFolder]);
const linesOf = ({ stdout }: Ended): unknown[] =>
  stdout
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));

function fileWith(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

const Launched = z.object({ runId: z.string() });
const Progress = z.object({ runId: z.string(), status: z.string(), step: z.int(), steps: z.int() });

test("launch from YAML, watch to the end, list it, show a rollout", async () => {
  const launch = await here("run", "launch", "-f", fileWith("run.yaml", tinyYaml(2)), "--watch", "--json");
  expect(launch, launch.stderr).toMatchObject({ code: 0, stderr: "" });
  const [first, ...progress] = linesOf(launch);
  const { runId } = Launched.parse(first);
  const seen = progress.map((line) => Progress.parse(line));
  expect(seen.at(-1)).toEqual(expect.objectContaining({ runId, status: "completed", step: 2, steps: 2 }));

  const Page = z.object({ items: z.array(z.object({ runId: z.string(), status: z.string(), name: z.string() })) });
  const listed = Page.parse(linesOf(await here("run", "list", "--query", "status:completed", "--json"))[0]);
  expect(listed.items).toEqual([expect.objectContaining({ runId, status: "completed", name: "tiny" })]);
  const table = await here("run", "list");
  expect(table.stdout).toContain(runId);

  const { groups } = await stack.rolldeck.readMatrix({ runId });
  const rolloutId = groups[0]?.cells[0]?.rolloutId ?? "";
  const Shown = z.object({
    rollout: z.object({ rolloutId: z.string(), state: z.literal("settled") }),
    turns: z.array(z.object({ turn: z.int(), sampledTokens: z.int().min(1) })).min(1),
  });
  const shown = Shown.parse(linesOf(await here("rollout", "show", rolloutId, "--json"))[0]);
  expect(shown.rollout.rolloutId).toBe(rolloutId);
  expect((await here("rollout", "show", rolloutId)).stdout).toContain("turn 0");

  // Watching a run that is over says so and ends.
  const again = await here("run", "watch", runId, "--json");
  expect(again.code).toBe(0);
  expect(linesOf(again)).toEqual([expect.objectContaining({ status: "completed" })]);
});

test("pause, resume, stop; a run that was stopped is not a success", async () => {
  const { runId } = Launched.parse(
    linesOf(await here("run", "launch", "-f", fileWith("long.yaml", tinyYaml(500)), "--json"))[0],
  );
  const status = () => stack.value("select status from runs where id = $1", [runId]);
  const act = async (action: string) => {
    const ended = await here("run", action, runId, "--json");
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return z.object({ runId: z.literal(runId), status: z.string() }).parse(linesOf(ended)[0]).status;
  };
  await stack.until(
    "it trains",
    async () => Number(await stack.value("select step from runs where id = $1", [runId])) > 0,
  );
  // Steered while it runs: what is named is changed, what is not stays.
  const flags = ["--run", "5", "--starts-per-second", "none", "--adaptive", "off"];
  const Changed = z.object({ dispatcher: z.object({ bounds: z.object({ init: z.int(), run: z.int() }) }) });
  const changed = linesOf(await here("run", "dispatcher", runId, ...flags, "--json"))[0];
  expect(Changed.parse(changed).dispatcher.bounds).toEqual({ init: 64, run: 5 });
  const quota = await here("quota", "set", "alpha", "12", "--resource", "sandbox", "--json");
  expect(linesOf(quota)[0]).toMatchObject({ quotas: [{ project: "alpha", resource: "sandbox", quota: 12 }] });
  expect((await here("quota", "list")).stdout).toContain("alpha");
  // What can't be set is said, with an exit code.
  const odd = await here("quota", "set", "alpha", "many", "--resource", "sandbox");
  expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining("a number")]);
  const idle = await here("pool", "set", "sandbox");
  expect([idle.code, idle.stderr]).toEqual([1, expect.stringContaining("nothing to set")]);
  const reserve = await here("pool", "set", "sandbox", "--size", "8", "--evaluation-reserve", "9");
  expect([reserve.code, reserve.stderr]).toEqual([1, expect.stringContaining("at most 8")]);
  expect((await here("rollout", "hold", "nothere12345")).code).toBe(1);

  expect(["pausing", "paused"]).toContain(await act("pause"));
  await stack.until("paused", async () => (await status()) === "paused");
  const paused = await stack.value("select step from runs where id = $1", [runId]);
  expect(["queued", "running"]).toContain(await act("resume"));
  await stack.until(
    "it goes on",
    async () => Number(await stack.value("select step from runs where id = $1", [runId])) > Number(paused),
  );
  expect(["stopping", "stopped"]).toContain(await act("stop"));
  await stack.until("stopped", async () => (await status()) === "stopped");
  const watched = await here("run", "watch", runId, "--json");
  expect(watched.code).toBe(1);
  expect(linesOf(watched)).toEqual([expect.objectContaining({ status: "stopped" })]);
  const resumed = await here("run", "resume", runId, "--json");
  expect(resumed.code).toBe(1);
  expect(resumed.stderr).toMatch(/stopped/);
});

test("login-url signs a browser in once", async () => {
  const ended = await here("login-url", "--json");
  const { url } = z.object({ url: z.url(), expiresAt: z.iso.datetime() }).parse(linesOf(ended)[0]);
  const first = await fetch(url, { redirect: "manual" });
  expect(first.status).toBe(303);
  const cookie = first.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(/HttpOnly/);
  const me = await fetch(`${stack.url}/api/v1/me`, { headers: { cookie: cookie.split(";")[0] ?? "" } });
  expect(me.status).toBe(200);
  expect((await fetch(url, { redirect: "manual" })).status).toBe(401);
  expect((await here("login-url")).stdout.trim()).toMatch(/^http:\/\/\S+\/sign-in\?code=\S+$/);
});

test("doctor finds everything and says what to do about what is missing", async () => {
  const ended = await here("doctor", "--json");
  const Finding = z.object({
    what: z.string(),
    state: z.enum(["ok", "warning", "failed"]),
    fix: z.string().nullable(),
  });
  const findings = z.array(Finding).parse(linesOf(ended)[0]);
  const state = Object.fromEntries(findings.map((finding) => [finding.what, finding.state]));
  expect(state).toMatchObject({ Node: "ok", "Python environment": "ok", Server: "ok" });
  for (const finding of findings) expect(finding.fix === null).toBe(finding.state === "ok");
});

test.each([
  ["an unknown key", "taskSets: [{ name: key-chain }]\nalgoritm: {}\n", /algoritm: unknown key.*algorithm/s],
  ["a wrong name", "taskSets: [{ name: key-chian }]\n", /taskSets\[0\]\.name: .*did you mean key-chain/s],
  ["a value out of range", "taskSets: [{ name: key-chain }]\nbudget: { steps: 0 }\n", /budget\.steps: /],
  ["text that is no YAML", "taskSets: [{ name: key-chain\n", /not valid YAML.*line/s],
])("%s is refused and the field named", async (_what, yaml, message) => {
  const before = await stack.value("select count(*)::int from runs");
  const ended = await here("run", "launch", "-f", fileWith("bad.yaml", yaml), "--json");
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(message);
  expect(await stack.value("select count(*)::int from runs")).toBe(before);
});

test("wrong usage ends with 2, a failure with 1, and each says what to do", async () => {
  const cases: [args: string[], code: number, says: RegExp][] = [
    [["run", "lunch"], 2, /lunch/],
    [["run", "launch", "--fiel", "x"], 2, /--fiel/],
    [["run", "stop"], 2, /missing.*run/],
    [["run", "launch"], 1, /-f run\.yaml/],
    [["run", "launch", "-f", path.join(folder, "none.yaml")], 1, /none\.yaml/],
    [["run", "stop", "nosuchrun0000000"], 1, /nosuchrun0000000/],
    [["run", "list", "--limit", "-1"], 1, /1 to 200/],
  ];
  const ended = await Promise.all(cases.map(([args]) => here(...args)));
  for (const [at, [, code, says]] of cases.entries()) {
    expect(ended[at]).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(says) });
  }
  const elsewhere = await rolldeck(["run", "list", "--data-dir", path.join(folder, "other")]);
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining("npm start") });
});
