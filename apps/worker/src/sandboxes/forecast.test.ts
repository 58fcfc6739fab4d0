/** What runtimes are told ahead, from the rows of a real run whose rollouts wait to be set up. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExpectedSandboxes, SandboxRuntime, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { finish } from "@rolldeck/tools/finish";
import { afterEach, expect, test } from "vitest";
import { type Rig, smokeConfig, startRig } from "../../testing/rig.ts";
import { SandboxForecast } from "./forecast.ts";

let rig: Rig;
let letGo: () => void = () => undefined;
afterEach(async () => {
  letGo();
  await rig?.close();
});

/** Opens nothing: rollouts wait in their set-up until they are let go. */
function stuckRuntime(opening: Promise<void>): SandboxRuntime {
  const none = async () => {
    await opening;
    throw new BoundaryError("sandbox", "refused", "nothing is opened here");
  };
  return {
    ...{ name: "remote", isolation: "", limits: [], ailment: async () => null, open: none, attach: none },
    ...{ renew: async () => new Set<string>(), close: async () => undefined, list: async () => [] },
    disconnect: async () => undefined,
  };
}

const image = (split: string, index: number) => ({ kind: "name", name: `image-${split}-${index % 2}` }) as const;
const task: Task = {
  name: "imaged",
  description: "",
  sandbox: "image",
  tools: ["finish"],
  defaults: { maxTurns: 2, maxContextTokens: 2048 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: {} }),
  messages: () => [{ role: "user", content: "nothing" }],
  sandboxFor: ({ split, index }) => ({
    ...{ image: image(split, index), resources: noResources, network: { mode: "none" } },
    ...{ workdir: null, environment: {}, services: [] },
  }),
  verify: async () => ({ reward: 0, success: false, parts: {}, notes: null }),
};

test("counts what waits to be opened by kind, says it again before it lapses, and that nothing is wanted any more", async () => {
  const opening = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const tasks = { imaged: task };
  rig = await startRig({ parts: { tasks, tools: { finish }, runtime: stuckRuntime(opening) } });
  const runId = await rig.launch({
    ...smokeConfig({ algorithm: { groupsPerStep: 8, groupSize: 2 }, budget: { steps: 1 } }),
    taskSets: [{ name: "imaged" }],
    sandbox: { cpus: 2 },
    dispatcher: { bounds: { init: 1 } },
  });
  const waiting = async () =>
    Number(await rig.value("select count(*)::int from rollouts where stage = 'init' and state = 'waiting'"));
  await rig.until("all but one wait", async () => (await waiting()) === 15);

  const told: { readonly image: string; readonly cpus: number | null; readonly count: number }[] = [];
  const troubles: string[] = [];
  let nowMs = 0;
  let trouble: { readonly code: string; readonly image?: string } | null = null;
  const hearing: SandboxRuntime = {
    ...stuckRuntime(opening),
    expect: async (sandbox: TaskSandbox, { count, forMs }: ExpectedSandboxes) => {
      const name = sandbox.image?.kind === "name" ? sandbox.image.name : "";
      if (trouble !== null && (trouble.image ?? name) === name) throw new BoundaryError("sandbox", trouble.code, "no");
      expect(forMs).toBeGreaterThan(20_000);
      told.push({ image: name, cpus: sandbox.resources.cpus, count });
    },
  };
  const forecast = new SandboxForecast({
    pool: rig.database.pool,
    tasks: new OpenedTasks({ tasks, dataRoots: [] }),
    runtimeOf: () => hearing,
    now: () => nowMs,
    onTrouble: (message) => troubles.push(message),
  });
  const { signal } = new AbortController();
  const look = async (afterMs: number) => {
    told.length = 0;
    nowMs += afterMs;
    await forecast.tell(signal);
    return [...told].sort((a, b) => (a.image < b.image ? -1 : 1));
  };
  const first = await look(0);
  expect(new Set(first.map((each) => each.image)).size).toBe(first.length);
  expect(first.every(({ cpus }) => cpus === 2)).toBe(true);
  expect(first.reduce((sum, { count }) => sum + count, 0)).toBe(15);
  // Soon after nothing is looked at; then nothing is new; then it is said again.
  expect([await look(1_000), await look(5_000), await look(15_000)]).toEqual([[], [], first]);
  // One that does not answer is asked once, one that refuses a sandbox is told of the others; both are told, and tried again later.
  const words = "remote was not told which sandboxes are wanted next";
  trouble = { code: "unavailable" };
  expect([await look(20_000), troubles.splice(0)]).toEqual([[], [words]]);
  const [bad] = first;
  trouble = { code: "refused", image: bad?.image };
  expect(await look(15_000)).toEqual(first.slice(1));
  expect([troubles.splice(0), await look(5_000), troubles]).toEqual([[words], [], []]);
  trouble = null;
  expect(await look(10_000)).toContainEqual(bad);
  await rig.database.pool.query("update runs set status = 'stopped' where id = $1", [runId]);
  expect(await look(5_000)).toEqual(first.map((each) => ({ ...each, count: 0 })));
  expect(await look(60_000)).toEqual([]);
});
