/** Rollouts in sandboxes on real parts: queue, database, shell, and namespaces of this machine as the sandboxes. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox, SandboxRuntime, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { readEvidence } from "@rolldeck/db/artifacts";
import { readRun } from "@rolldeck/db/reads/read-run";
import { ProcessRuntime } from "@rolldeck/sandbox/process/process-runtime";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { bash } from "@rolldeck/tools/bash/bash";
import { finish } from "@rolldeck/tools/finish";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { type Rig, type RigOptions, smokeConfig, startRig } from "../../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const folder = await mkdtemp(join(tmpdir(), "rolldeck-sandboxed-"));
const runtime: SandboxRuntime = new ProcessRuntime({
  settings: parseSandboxSettings({}, folder),
  deployment: "test",
  stateFolder: folder,
  onTrouble: () => undefined,
});
const ailment = await runtime.ailment(AbortSignal.timeout(30_000));
const signal = new AbortController().signal;

let rig: Rig;
afterEach(async () => {
  await rig?.close();
  for (const { id } of await runtime.list(signal)) await runtime.close(id, signal);
});
afterAll(async () => {
  await runtime.disconnect();
  await rm(folder, { recursive: true, force: true });
});

const place: TaskSandbox = {
  image: null,
  resources: noResources,
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
};
const shell = async (sandbox: Sandbox, script: string): Promise<string> => {
  const { stdout } = await sandbox.exec({ command: ["/bin/sh", "-c", script], timeoutMs: 20_000 }, signal);
  return Buffer.from(stdout.head).toString("utf8");
};
const bytes = (text: string) => Buffer.from(text);

/** Set up with a word in a file; solved when the file holds it twice, in a fresh sandbox that is given what was collected. */
const doubled = (change: Partial<Task> = {}): Task => ({
  name: "doubled",
  description: "",
  sandbox: "process",
  tools: ["bash", "finish"],
  defaults: { maxTurns: 20, maxContextTokens: 8192 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: { seed: index } }),
  messages: () => [{ role: "user", content: "double it" }],
  sandboxFor: () => place,
  setUp: async (_instance, sandbox) => {
    await sandbox.writeFile("/tmp/word", bytes("word\n"), {}, signal);
  },
  collect: async (_instance, sandbox) => [
    {
      name: "patch.diff",
      mediaType: "text/x-diff",
      content: await sandbox.readFile("/tmp/word", { maxBytes: 1e6 }, signal),
    },
  ],
  verify: async (_instance, _rollout, { sandboxes }) => {
    const fresh = await sandboxes?.open();
    const collected = (await sandboxes?.collected("patch.diff")) ?? bytes("");
    await fresh?.writeFile("/tmp/word", collected, {}, signal);
    const success = fresh !== undefined && (await shell(fresh, "cat /tmp/word")) === "word\nword\n";
    return { reward: success ? 1 : 0, success, parts: { doubled: success ? 1 : 0 }, notes: null, flags: ["looked at"] };
  },
  ...change,
});

const recite =
  (...lines: string[]) =>
  ({ prompt }: { prompt: string }) =>
    lines[prompt.split("<|assistant|>").length - 2] ?? lines.at(-1) ?? "";
const call = (script: string): string => `[bash(command=${JSON.stringify(script)})]`;
const done = '[finish(answer="done")]';
const solve = [call("cd /tmp; cat word word > two"), call("mv two word; ls"), done];

const start = (task: Task, options: Partial<RigOptions> = {}) =>
  startRig({
    policy: recite(...solve),
    env: { ROLLDECK_DATA_DIR: folder },
    ...options,
    parts: { tasks: { doubled: task }, tools: { bash, finish }, runtime },
  });
const config = (change: Partial<RunConfigInput> = {}): RunConfigInput => ({
  ...smokeConfig({ algorithm: { groupsPerStep: 1, groupSize: 2 }, budget: { steps: 1 }, ...change }),
  taskSets: [{ name: "doubled" }],
  agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 8192, maxTurns: 20, ...change.agent },
});
const rows = async (sql: string, runId: string) => (await rig.database.pool.query(sql, [runId])).rows;
const outcomes = (runId: string) =>
  rows("select reward, ending, attempt, flags from rollouts where run_id = $1 order by sample", runId);
const sandboxesOf = (runId: string) =>
  rows(
    "select id, purpose, state, attempt, reason, phases from sandboxes where run_id = $1 order by created_at",
    runId,
  );

describe.skipIf(ailment !== null)("rollouts in sandboxes", () => {
  test("are set up, acted in, collected from, graded in fresh ones, and leave nothing behind", async () => {
    rig = await start(doubled());
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect(await outcomes(runId)).toEqual(
      Array(2).fill({ reward: 1, ending: "finish_tool", attempt: 1, flags: ["looked at"] }),
    );
    const sandboxes = await sandboxesOf(runId);
    expect(sandboxes.map(({ purpose, state }) => `${purpose} ${state}`).sort()).toEqual([
      "agent closed",
      "agent closed",
      "grade closed",
      "grade closed",
    ]);
    for (const { purpose, phases } of sandboxes) {
      expect(Object.keys(phases).sort()).toEqual(
        purpose === "agent" ? ["close", "collect", "open", "setUp"] : ["close", "open", "verify"],
      );
    }
    expect(await runtime.list(signal)).toEqual([]);
    const [rollout] = await rows('select id as "rolloutId", attempt from rollouts where run_id = $1', runId);
    expect(Buffer.from((await readEvidence(rig.database.pool, rollout, "patch.diff")) ?? []).toString()).toBe(
      "word\nword\n",
    );
    const log = Buffer.from((await readEvidence(rig.database.pool, rollout, "agent-sandbox.jsonl")) ?? []).toString();
    expect(
      log
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).what),
    ).toContain("attach");
    expect(await rig.value("select sum(used)::int from pools")).toBe(0);
    const types = (await rig.events(runId)).map(({ type }) => type);
    expect(types.filter((type) => type === "sandbox-opened")).toHaveLength(4);
    expect(types.filter((type) => type === "sandbox-closed")).toHaveLength(4);
  });

  test("graded in place: the agent's own sandbox, processes and all, serves the verifier and then goes", async () => {
    const inPlace = doubled({
      gradeInPlace: true,
      collect: undefined,
      verify: async (_instance, _rollout, { sandboxes }) => {
        const own = await sandboxes?.agent();
        const success = own !== undefined && (await shell(own, "cat /tmp/word; pgrep -c sleep")) === "word\nword\n1\n";
        return { reward: success ? 1 : 0, success, parts: {}, notes: null };
      },
    });
    rig = await start(inPlace, { policy: recite(...solve.slice(0, 2), call("sleep 100 >/dev/null 2>&1 &"), done) });
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    await rig.until("all are closed", async () => (await sandboxesOf(runId)).every(({ state }) => state === "closed"));
    expect(await sandboxesOf(runId)).toHaveLength(2);
    expect(await runtime.list(signal)).toEqual([]);
  });

  test("a sandbox that is lost costs a new attempt, never a grade", async () => {
    let lost = false;
    const policy = recite(...solve);
    rig = await start(doubled(), {
      policy: async (input) => {
        if (!lost && input.prompt.includes("<|tool|>")) {
          lost = true;
          for (const { id } of await runtime.list(signal)) await runtime.close(id, signal);
        }
        return policy(input);
      },
    });
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const settled = await outcomes(runId);
    expect(settled.map(({ reward }) => reward)).toEqual([1, 1]);
    expect(Math.max(...settled.map(({ attempt }) => attempt))).toBe(2);
    expect(await runtime.list(signal)).toEqual([]);
  });

  test("another worker goes on in the same sandbox where the first one stopped", async () => {
    const reached = { turn: 0 };
    const policy = recite(...solve);
    rig = await start(doubled(), {
      workers: 2,
      policy: async (input) => {
        const turn = input.prompt.split("<|assistant|>").length - 2;
        reached.turn = Math.max(reached.turn, turn);
        if (turn === 1) await new Promise((resolve) => setTimeout(resolve, 400));
        return policy(input);
      },
    });
    const runId = await rig.launch(config());
    await rig.until("the second turn is sampled", async () => reached.turn >= 1);
    await rig.workers[0]?.stop();
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward, attempt }) => [reward, attempt])).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect((await sandboxesOf(runId)).filter(({ purpose }) => purpose === "agent")).toHaveLength(2);
  });

  test("an agent whose time is over is graded for what it left", async () => {
    rig = await start(doubled({ maxRunMs: () => 2_500 }), {
      policy: recite(...solve.slice(0, 2), call("sleep 60")),
    });
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward, ending }) => [reward, ending])).toEqual([
      [1, "time_limit"],
      [1, "time_limit"],
    ]);
  });

  test("time in which the model server is away is none of the agent's", async () => {
    rig = await start(doubled({ maxRunMs: () => 6_000 }));
    const runId = await rig.launch(config());
    await rig.until("an agent is at work", () => rig.value("select 1 from rollouts where turns > 0"));
    await rig.gpu.pause();
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    await rig.gpu.resume();
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward, ending }) => [reward, ending])).toEqual([
      [1, "finish_tool"],
      [1, "finish_tool"],
    ]);
  });

  test("set-up that fails is a failed attempt, and its sandbox is gone with it", async () => {
    let failures = 0;
    const flaky = doubled({
      setUp: async (instance, sandbox) => {
        if (failures++ < 2) throw new Error("the repository is not there");
        await doubled().setUp?.(instance, sandbox, signal);
      },
    });
    rig = await start(flaky);
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    const failed = (await sandboxesOf(runId)).filter(({ reason }) => reason === "the repository is not there");
    expect(failed.map(({ state }) => state)).toEqual(["closed", "closed"]);
    expect(await runtime.list(signal)).toEqual([]);
  });

  test("steps: each answer but the last brings the next task, in the same sandbox", async () => {
    const steps = doubled({
      nextStep: async (_instance, sandbox, { done: before, keep }) => {
        await keep({
          name: `step-${before + 1}.txt`,
          mediaType: "text/plain",
          content: bytes(await shell(sandbox, "cat /tmp/word")),
        });
        if (before > 0) return null;
        return {
          output: "next",
          context: { kind: "restart", messages: [{ role: "user", content: "now the second part" }] },
        };
      },
    });
    const second = [call("cd /tmp; cat word word > two; mv two word"), '[finish(answer="second")]'];
    rig = await start(steps, {
      policy: ({ prompt }) =>
        prompt.includes("second part") ? recite(...second)({ prompt }) : recite(call("true"), done)({ prompt }),
    });
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    const [rollout] = await rows('select id as "rolloutId", attempt from rollouts where run_id = $1', runId);
    const kept = await Promise.all(
      ["step-1.txt", "step-2.txt"].map((name) => readEvidence(rig.database.pool, rollout, name)),
    );
    expect(kept.map((content) => Buffer.from(content ?? []).toString())).toEqual(["word\n", "word\nword\n"]);
  });

  test("kept to be looked into where the run asks for it, and closed when let go", async () => {
    rig = await start(doubled());
    const runId = await rig.launch(config({ sandbox: { keep: "always", keepMinutes: 5 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const kept = () => rows("select id from sandboxes where run_id = $1 and state = 'kept'", runId);
    await rig.until("the agents' sandboxes are kept", async () => (await kept()).length === 2);
    const [{ id }] = await kept();
    const sandbox = await runtime.attach(id, signal);
    expect(await shell(sandbox, "cat /tmp/word")).toBe("word\nword\n");
    await rig.database.pool.query("update sandboxes set keep_until = now() where state = 'kept'");
    await rig.until(
      "they are closed",
      async () => (await kept()).length === 0 && (await runtime.list(signal)).length === 0,
    );
  });

  test("kept ones count in the pool: the last one is left for rollouts, which all come to their end", async () => {
    rig = await start(doubled());
    await rig.database.pool.query("update pools set size = 2 where resource = 'sandbox'");
    const keep = { keep: "always", keepMinutes: 5 } as const;
    const runId = await rig.launch(config({ sandbox: keep, algorithm: { groupsPerStep: 2, groupSize: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
    const ofAgents = (await sandboxesOf(runId)).filter(({ purpose }) => purpose === "agent");
    expect(ofAgents.map(({ state }) => state).sort()).toEqual(["closed", "closed", "closed", "kept"]);
    const why = ofAgents.filter(({ state }) => state === "closed").map(({ reason }) => reason);
    expect(new Set(why)).toEqual(
      new Set([
        "its agent is done; not kept: 1 of 2 sandboxes are kept already, and at least one is left for rollouts",
      ]),
    );
  });

  test("of rollouts without success alone: the others' go as soon as they are graded", async () => {
    // Every other one has another word to double.
    let begun = 0;
    const other = doubled({
      setUp: async (instance, sandbox) => {
        await doubled().setUp?.(instance, sandbox, signal);
        if (begun++ % 2 === 0) await sandbox.writeFile("/tmp/word", bytes("other\n"), {}, signal);
      },
    });
    rig = await start(other);
    const keep = { keep: "failed", keepMinutes: 5 } as const;
    const runId = await rig.launch(config({ sandbox: keep, algorithm: { groupsPerStep: 4, groupSize: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const states = () =>
      rows(
        `select s.state, r.success from sandboxes s join rollouts r on r.id = s.rollout_id
         where s.run_id = $1 and s.purpose = 'agent' group by s.id, s.state, r.success`,
        runId,
      );
    await rig.until("those of successes are closed", async () =>
      (await states()).every(({ state, success }) => (state === "closed") === success),
    );
    expect(new Set((await states()).map(({ state }) => state))).toEqual(new Set(["closed", "kept"]));
  });

  test.each(["agents'", "grading"])(
    "%s sandboxes that can't be had at all are asked for once, and the page says so once",
    async (whose) => {
      const image = { kind: "name", name: "registry.example/none:1" } as const;
      const wanted = { ...place, image };
      const change: Partial<Task> =
        whose === "grading"
          ? {
              verify: async (_instance, _rollout, { sandboxes }) => {
                await sandboxes?.open(wanted);
                return { reward: 1, success: true, parts: {}, notes: null };
              },
            }
          : { sandboxFor: () => wanted };
      rig = await start(doubled(change));
      const runId = await rig.launch(config());
      expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
      const settled = await rows(
        "select outcome, ending, attempt, reward, reason, evaluate_failures from rollouts where run_id = $1",
        runId,
      );
      expect(settled.length).toBeGreaterThan(0);
      for (const row of settled) {
        expect(row).toMatchObject({ outcome: "failed", ending: "sandbox_refused", attempt: 1, reward: null });
        expect(row.evaluate_failures).toBe(0);
        expect(row.reason).toContain(image.name);
      }
      const { sandboxRefusal } = await readRun(rig.database.pool, runId);
      expect(sandboxRefusal).toMatchObject({ purpose: "train", rollouts: 2, alike: 2 });
      expect(sandboxRefusal?.reason).toContain(image.name);
      expect(await rig.value("select sum(used)::int from pools")).toBe(0);
      expect(await runtime.list(signal)).toEqual([]);
    },
  );

  test("a run whose sandboxes can't be opened here says so before anything starts", async () => {
    rig = await startRig({ parts: { tasks: { doubled: doubled() }, tools: { bash, finish } } });
    const runId = await rig.launch(config({ sandbox: { runtime: "remote" } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
    expect(await rig.status(runId)).toMatchObject({ reason: expect.stringContaining("no remote sandboxes") });
  });
});
