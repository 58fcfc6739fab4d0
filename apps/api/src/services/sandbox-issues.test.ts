import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import type { Task } from "@rolldeck/contracts/ports/task";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { expect, test } from "vitest";
import { sandboxFacts } from "./sandbox-issues.ts";
import { withOpenedTasks } from "./task-set-issues.ts";

/** Launch over task sets whose tasks need this; `variables` are the server's. */
async function check(
  needs: readonly Task["sandbox"][],
  sandbox: RunConfigInput["sandbox"] = {},
  variables: Record<string, string> = {},
  socketThere = true,
): Promise<ConfigCheck> {
  const config = RunConfig.parse({ taskSets: needs.map((name) => ({ name })), sandbox });
  const passed: ConfigCheck = { ok: true, config, issues: [], warnings: [], estimate: null };
  const task = (at: number) => ({ name: needs[at], sandbox: needs[at], size: () => null }) as unknown as Task;
  const facts = sandboxFacts(parseSandboxSettings(variables, "/"), () => socketThere);
  return withOpenedTasks(passed, { of: async (_config, at) => task(at) }, { hasJudge: false, sandboxes: facts });
}
const issuesOf = async (...asked: Parameters<typeof check>) =>
  (await check(...asked)).issues.map(({ path, message, fix }) => [path, message, fix]);

test("an image has no place in a process sandbox, nor a task without one in a container", async () => {
  expect(await issuesOf(["none", "image"], { runtime: "process" })).toEqual([
    ["sandbox.runtime", "image needs an image, and process sandboxes have none", "use docker, or null"],
  ]);
  expect(await issuesOf(["process"], { runtime: "docker" })).toEqual([
    ["sandbox.runtime", "process names no image, and docker sandboxes are made of one", "use process, or null"],
  ]);
  expect(await issuesOf(["image"], {}, { ROLLDECK_SANDBOX: "process" })).toEqual([
    ["taskSets[0].name", "image needs an image, and process sandboxes have none", "use docker as sandbox.runtime"],
  ]);
});

test.each([
  ["kubernetes", "ROLLDECK_KUBECONFIG"],
  ["remote", "ROLLDECK_SANDBOX_SERVER and ROLLDECK_SANDBOX_TOKEN"],
] as const)("%s sandboxes that are not configured are refused with what to set", async (runtime, setting) => {
  const message = `image needs a sandbox, and this server has no ${runtime} sandboxes: they are not configured`;
  const fix = `set ${setting} for the server and its workers; or use docker, or null`;
  expect(await issuesOf(["image", "image"], { runtime })).toEqual([["sandbox.runtime", message, fix]]);
  expect((await check(["image"], { runtime })).config).toBeNull();
});

test("what is configured passes, and tasks without a sandbox ask for nothing", async () => {
  const remote = { ROLLDECK_SANDBOX_SERVER: "https://boxes.example", ROLLDECK_SANDBOX_TOKEN: "0123456789abcdef" };
  for (const passing of [
    check(["image"], { runtime: "remote" }, remote),
    check(["image"], { runtime: "kubernetes" }, { ROLLDECK_KUBECONFIG: "/etc/kube" }),
    check(["image", "process", "none"]),
    check(["process"], { runtime: "remote" }, remote),
    check(["none"], { runtime: "kubernetes" }),
  ]) {
    expect(await passing).toMatchObject({ ok: true, issues: [], warnings: [] });
  }
});

test("a Docker socket that is not on this machine is a warning: workers may be elsewhere", async () => {
  const told = await check(["image", "image"], {}, { ROLLDECK_DOCKER_SOCKET: "/run/none.sock" }, false);
  expect(told).toMatchObject({ ok: true, warnings: [{ path: "sandbox.runtime" }] });
  expect(told.warnings[0]?.message).toContain("/run/none.sock");
  expect((await check(["none"], {}, {}, false)).warnings).toEqual([]);
});
