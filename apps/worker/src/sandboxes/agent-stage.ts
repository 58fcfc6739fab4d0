/**
 * The agent's sandbox over init and run: set up before its first turn, collected from and closed after its last. Invariants: what the
 * verifier needs is durable before the sandbox is closed; a time limit ends the agent's work, never what it left.
 */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { addSandboxPhases, keepSandbox } from "@rolldeck/db/hot/sandboxes";
import { agentSandbox } from "@rolldeck/db/reads/live-sandboxes";
import { saveEvidence } from "../save-evidence.ts";
import type { WorkerContext } from "../worker-context.ts";
import { specOf } from "./grading-sandboxes.ts";
import type { OpenSandbox, StageOfRollout } from "./rollout-sandboxes.ts";

type Scene = Pick<WorkerContext, "pool" | "sandboxes">;
export interface AgentOf {
  readonly of: StageOfRollout & Pick<ClaimedStage, "turns">;
  readonly task: Task;
  readonly instance: TaskInstance;
}

/** It stays through grading where the verifier works in it, or where it may be kept to look into. */
const staysForGrading = ({ task, of }: AgentOf): boolean =>
  task.gradeInPlace === true || of.config.sandbox.keep !== "never";

/** @throws BoundaryError, FencedError, the signal's reason; no sandbox is left then */
export async function openForAgent(scene: Scene, agent: AgentOf, signal: AbortSignal): Promise<void> {
  const { of, task, instance } = agent;
  const wanted = { task, spec: specOf(task, instance), purpose: "agent" } as const;
  const prepare = async (sandbox: Sandbox) => task.setUp?.(instance, sandbox, signal);
  const opened = await scene.sandboxes.open(of, wanted, { inPlace: staysForGrading(agent), prepare }, signal);
  await keepLog(scene, agent, opened, 0, signal);
}

/**
 * After the agent's last turn: its processes end, the task takes what its verifier needs, the sandbox goes. Where the verifier works
 * in place everything is left as it is.
 */
export async function collectFromAgent(
  scene: Scene,
  agent: AgentOf,
  opened: OpenSandbox,
  turns: number,
  signal: AbortSignal,
): Promise<void> {
  const { of, task, instance } = agent;
  const { sandbox, runtime } = opened;
  const startedAt = performance.now();
  if (task.gradeInPlace !== true) await sandbox.killAll(signal);
  for (const evidence of (await task.collect?.(instance, sandbox, signal)) ?? []) {
    await saveEvidence(scene.pool, of, turns, evidence, signal);
  }
  const phases = { collect: performance.now() - startedAt };
  await keepLog(scene, agent, opened, turns, signal);
  await addSandboxPhases(scene.pool, sandbox.id, phases);
  if (staysForGrading(agent)) return;
  const row = await agentSandbox(scene.pool, of.rolloutId, of.attempt);
  const end = { reason: "its agent is done" };
  if (row?.keep) await scene.sandboxes.keep(sandbox.id, end.reason);
  else await scene.sandboxes.close(runtime, sandbox.id, end);
}

/** Before the verdict is written: its sandbox is kept when the sweep finds the rollout over, where the run asks for that. */
export async function keepAfterGrading(scene: Scene, { of }: AgentOf, success: boolean): Promise<void> {
  const { keep, keepMinutes } = of.config.sandbox;
  if (keep === "never" || (keep === "failed" && success)) return;
  const row = await agentSandbox(scene.pool, of.rolloutId, of.attempt);
  if (row !== null) await keepSandbox(scene.pool, row.id, keepMinutes);
}

async function keepLog(
  { pool }: Scene,
  { of }: AgentOf,
  { log }: OpenSandbox,
  turns: number,
  signal: AbortSignal,
): Promise<void> {
  const evidence = {
    name: artifactNames.agentLog,
    mediaType: "application/x-ndjson",
    content: Buffer.from(log.text()),
  };
  await saveEvidence(pool, of, turns, evidence, signal);
}
