/** Sandboxes that stand ready before a rollout asks for them: a real worker tells a real sandbox server what it will want. */
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { hostAilment } from "@rolldeck/sandbox/process/host-ailment";
import { finish } from "@rolldeck/tools/finish";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RemoteStack } from "../../apps/sandbox-server/testing/remote-stack.ts";
import { type Rig, smokeConfig, startRig } from "../../apps/worker/testing/rig.ts";

const ailment = await hostAilment();
const { signal } = new AbortController();

describe.skipIf(ailment !== null)("sandboxes opened ahead", () => {
  let stack: RemoteStack;
  let rig: Rig;
  let letGo: () => void = () => undefined;

  beforeAll(async () => {
    stack = await RemoteStack.make();
    await stack.startServer(["--starts-per-second", "100", "--starts-per-host", "100", "--max-ready", "3"]);
    await stack.startHost("alpha", { runtime: "process", args: ["--memory-mb", "100000"] });
  });
  afterAll(async () => {
    letGo();
    await rig?.close();
    await stack?.stop();
  });

  test("are those that the rollouts of a step wait for, and are taken by them", async () => {
    const goes = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const task: Task = {
      name: "waits",
      description: "",
      sandbox: "process",
      tools: ["finish"],
      defaults: { maxTurns: 2, maxContextTokens: 2048 },
      size: () => null,
      instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: {} }),
      messages: () => [{ role: "user", content: "nothing" }],
      sandboxFor: () => ({
        ...{ image: null, resources: noResources, network: { mode: "none" }, workdir: null },
        ...{ environment: { KIND: "ahead" }, services: [] },
      }),
      // The first one holds the only slot: the others wait to be opened.
      setUp: () => goes,
      verify: async () => ({ reward: 1, success: true, parts: {}, notes: null }),
    };
    rig = await startRig({
      policy: () => '[finish(answer="done")]',
      parts: { tasks: { waits: task }, tools: { finish } },
      env: { ROLLDECK_SANDBOX_SERVER: stack.url, ROLLDECK_SANDBOX_TOKEN: await stack.token("client") },
    });
    const runId = await rig.launch({
      ...smokeConfig({ algorithm: { groupsPerStep: 2, groupSize: 4 }, budget: { steps: 1 } }),
      taskSets: [{ name: "waits" }],
      agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 2048, maxTurns: 2 },
      sandbox: { runtime: "remote" },
      dispatcher: { bounds: { init: 1 } },
    });
    const client = stack.client();
    const warm = async () => (await client.status(signal)).hosts.reduce((sum, host) => sum + host.warm, 0);
    await rig.until("as many as may stand ready do", async () => (await warm()) === 3);
    expect((await client.status(signal)).sandboxes).toBe(1);
    letGo();
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const answer = await fetch(`${stack.url}/metrics`, {
      headers: { authorization: `Bearer ${await stack.token("client")}` },
    });
    const [, taken] = /^rolldeck_sandbox_opened_total\{[^}]*how="warm"[^}]*\} (\d+)$/m.exec(await answer.text()) ?? [];
    expect(Number(taken)).toBeGreaterThanOrEqual(3);
  });
});
