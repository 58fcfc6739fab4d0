/** The real worker with one task more: a shell in a sandbox of this machine's own, and a fresh sandbox to grade in. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { noResources, type Sandbox, type TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { tasks } from "@rolldeck/tasks/registry";
import { compose } from "../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../apps/worker/src/env.ts";

const place: TaskSandbox = {
  image: null,
  resources: noResources,
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
};

async function lines(sandbox: Sandbox, script: string): Promise<number> {
  const signal = AbortSignal.timeout(60_000);
  const { stdout } = await sandbox.exec({ command: ["/bin/sh", "-c", script], timeoutMs: 30_000 }, signal);
  return Buffer.from(stdout.head).toString("utf8").split("\n").length - 1;
}

const boxed: Task = {
  name: "boxed",
  description: "Chaos",
  sandbox: "process",
  tools: ["bash", "finish"],
  defaults: { maxTurns: 20, maxContextTokens: 8_192 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: {} }),
  messages: () => [{ role: "user", content: "count" }],
  sandboxFor: () => place,
  verify: async (_instance, rollout, { sandboxes }) => {
    const fresh = await sandboxes?.open();
    if (fresh === undefined) throw new BoundaryError("verifier", "no_sandbox", "there is no sandbox to grade in");
    const fromTwo = (await lines(fresh, "seq 2")) - 1;
    const reward = (rollout.toolCalls.length + fromTwo) % 2;
    return { reward, success: reward === 1, parts: { odd: reward }, notes: null };
  },
};

const worker = await compose(parseWorkerEnv(process.env, process.cwd()), { tasks: { ...tasks, boxed } });
await worker.start();
process.on("SIGTERM", () => {
  worker.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
