/** A task whose set-up, agent and verifier each take the time that a workload gives their rollout. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import { noResources, type Sandbox, type TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";

const place: TaskSandbox = {
  image: null,
  resources: noResources,
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
};
/** No stage is to end by a limit of the command's. */
const timeoutMs = 86_400_000;

const wait = async (sandbox: Sandbox, stage: Stage, signal: AbortSignal): Promise<number> =>
  (await sandbox.exec({ command: ["wait", stage], timeoutMs }, signal)).exitCode ?? 1;

/** @param name tells workloads and their seeds apart, and with them what is learned of their instances */
export const timedTask = (name: string, instances: number): Task => ({
  name,
  description: "Benchmark",
  sandbox: "process",
  tools: ["echo", "finish"],
  defaults: { maxTurns: 1000, maxContextTokens: 65_536 },
  size: () => instances,
  instance: (split, index) => ({ instanceId: `${name}-${index}`, split, index, state: {} }),
  messages: ({ index }) => [{ role: "user", content: `wait ${index}` }],
  sandboxFor: () => place,
  setUp: async (_instance, sandbox, signal) => {
    await wait(sandbox, "init", signal);
  },
  verify: async (_instance, _rollout, { sandboxes, signal }) => {
    if (sandboxes === undefined) throw new BoundaryError("verifier", "no_sandbox", "a timed rollout needs a sandbox");
    const reward = (await wait(await sandboxes.open(), "evaluate", signal)) === 0 ? 1 : 0;
    return { reward, success: reward === 1, parts: { done: reward }, notes: null };
  },
});

/** What the agent calls once: its whole run stage. */
export const work: Tool = {
  name: "echo",
  description: "Works",
  parameters: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  },
  idempotent: true,
  call: async (_args, { sandbox, signal }) => {
    if (sandbox === undefined) throw new BoundaryError("tool", "no_sandbox", "a timed rollout needs a sandbox");
    await wait(sandbox, "run", signal);
    return { output: "done" };
  },
};
