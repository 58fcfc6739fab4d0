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

const wait = async (sandbox: Sandbox, stage: Stage, signal: AbortSignal): Promise<void> => {
  await sandbox.exec({ command: ["wait", stage], timeoutMs }, signal);
};

export const timedTask: Task = {
  name: "timed",
  description: "Benchmark",
  sandbox: "process",
  tools: ["echo", "finish"],
  defaults: { maxTurns: 1000, maxContextTokens: 65_536 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `timed-${split}-${index}`, split, index, state: {} }),
  messages: ({ index }) => [{ role: "user", content: `wait ${index}` }],
  sandboxFor: () => place,
  setUp: (_instance, sandbox, signal) => wait(sandbox, "init", signal),
  verify: async (_instance, _rollout, { sandboxes, signal }) => {
    if (sandboxes === undefined) throw new BoundaryError("verifier", "no_sandbox", "a timed rollout needs a sandbox");
    await wait(await sandboxes.open(), "evaluate", signal);
    return { reward: 1, success: true, parts: { done: 1 }, notes: null };
  },
};

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
