import { readEvidence } from "@rolldeck/db/artifacts";
import { describe, expect, test, vi } from "vitest";
import {
  bytes,
  call,
  done,
  doubled,
  recite,
  SandboxedScene,
  sandboxedConfig,
  shell,
  solve,
} from "../../testing/sandboxed-scene.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const scene = await SandboxedScene.make();
const { runtime, ailment } = scene;
const signal = new AbortController().signal;

describe.skipIf(ailment !== null)("rollouts in sandboxes", () => {
  test("are set up, acted in, collected from, graded in fresh ones, and leave nothing behind", async () => {
    const rig = await scene.start(doubled());
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect(await scene.outcomes(runId)).toEqual(
      Array(2).fill({ reward: 1, ending: "finish_tool", attempt: 1, flags: ["looked at"] }),
    );
    const sandboxes = await scene.sandboxesIn(runId);
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
    const [rollout] = await scene.rows('select id as "rolloutId", attempt from rollouts where run_id = $1', runId);
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
    const rig = await scene.start(inPlace, {
      policy: recite(...solve.slice(0, 2), call("sleep 100 >/dev/null 2>&1 &"), done),
    });
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    await rig.until("all are closed", async () =>
      (await scene.sandboxesIn(runId)).every(({ state }) => state === "closed"),
    );
    expect(await scene.sandboxesIn(runId)).toHaveLength(2);
    expect(await runtime.list(signal)).toEqual([]);
  });

  test("a sandbox that is lost costs a new attempt, never a grade", async () => {
    let lost = false;
    const policy = recite(...solve);
    const rig = await scene.start(doubled(), {
      policy: async (input) => {
        if (!lost && input.prompt.includes("<|tool|>")) {
          lost = true;
          for (const { id } of await runtime.list(signal)) await runtime.close(id, signal);
        }
        return policy(input);
      },
    });
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const settled = await scene.outcomes(runId);
    expect(settled.map(({ reward }) => reward)).toEqual([1, 1]);
    expect(Math.max(...settled.map(({ attempt }) => attempt))).toBe(2);
    expect(await runtime.list(signal)).toEqual([]);
  });

  test("another worker goes on in the same sandbox where the first one stopped", async () => {
    const reached = { turn: 0 };
    const policy = recite(...solve);
    const rig = await scene.start(doubled(), {
      workers: 2,
      policy: async (input) => {
        const turn = input.prompt.split("<|assistant|>").length - 2;
        reached.turn = Math.max(reached.turn, turn);
        if (turn === 1) await new Promise((resolve) => setTimeout(resolve, 400));
        return policy(input);
      },
    });
    const runId = await rig.launch(sandboxedConfig());
    await rig.until("the second turn is sampled", async () => reached.turn >= 1);
    await rig.workers[0]?.stop();
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward, attempt }) => [reward, attempt])).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect((await scene.sandboxesIn(runId)).filter(({ purpose }) => purpose === "agent")).toHaveLength(2);
  });

  test("an agent whose time is over is graded for what it left", async () => {
    const rig = await scene.start(doubled({ maxRunMs: () => 2_500 }), {
      policy: recite(...solve.slice(0, 2), call("sleep 60")),
    });
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward, ending }) => [reward, ending])).toEqual([
      [1, "time_limit"],
      [1, "time_limit"],
    ]);
  });

  test("time in which the model server is away is none of the agent's", async () => {
    const rig = await scene.start(doubled({ maxRunMs: () => 6_000 }));
    const runId = await rig.launch(sandboxedConfig());
    await rig.until("an agent is at work", () => rig.value("select 1 from rollouts where turns > 0"));
    await rig.gpu.pause();
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    await rig.gpu.resume();
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward, ending }) => [reward, ending])).toEqual([
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
    const rig = await scene.start(flaky);
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    const failed = (await scene.sandboxesIn(runId)).filter(({ reason }) => reason === "the repository is not there");
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
    const rig = await scene.start(steps, {
      policy: ({ prompt }) =>
        prompt.includes("second part") ? recite(...second)({ prompt }) : recite(call("true"), done)({ prompt }),
    });
    const runId = await rig.launch(sandboxedConfig());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
    const [rollout] = await scene.rows('select id as "rolloutId", attempt from rollouts where run_id = $1', runId);
    const kept = await Promise.all(
      ["step-1.txt", "step-2.txt"].map((name) => readEvidence(rig.database.pool, rollout, name)),
    );
    expect(kept.map((content) => Buffer.from(content ?? []).toString())).toEqual(["word\n", "word\nword\n"]);
  });
});
