/**
 * The agent's sandbox over init and run: set up before its first turn, collected from and closed after its last. Invariants: what the
 * verifier needs is durable before the sandbox is closed or given on; a time limit ends the agent's work, never what it left.
 */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import { maxEvaluateAttempts } from "@rolldeck/contracts/jobs";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { decideHeldSandbox, type Keeping, keepSandbox, noRoomWords, sayNotKept } from "@rolldeck/db/hot/kept-sandboxes";
import { addSandboxPhases } from "@rolldeck/db/hot/sandboxes";
import { agentSandbox } from "@rolldeck/db/reads/live-sandboxes";
import { dispatcherNamed } from "@rolldeck/dispatch/registry";
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

const gradesInPlace = ({ task }: AgentOf): boolean => task.gradeInPlace === true;

/** @throws BoundaryError, FencedError, the signal's reason; no sandbox is left then */
export async function openForAgent(scene: Scene, agent: AgentOf, signal: AbortSignal): Promise<void> {
  const { of, task, instance } = agent;
  const wanted = { task, spec: specOf(task, instance), purpose: "agent" } as const;
  const prepare = async (sandbox: Sandbox) => task.setUp?.(instance, sandbox, signal);
  const keeps = dispatcherNamed(of.config.dispatcher.name)?.keepsEnvironments ?? false;
  const opened = await scene.sandboxes.open(of, wanted, { inPlace: gradesInPlace(agent), keeps, prepare }, signal);
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
  const { sandbox } = opened;
  const startedAt = performance.now();
  if (task.gradeInPlace !== true) await sandbox.killAll(signal);
  for (const evidence of (await task.collect?.(instance, sandbox, signal)) ?? []) {
    await saveEvidence(scene.pool, of, turns, evidence, signal);
  }
  const phases = { collect: performance.now() - startedAt };
  await keepLog(scene, agent, opened, turns, signal);
  await addSandboxPhases(scene.pool, sandbox.id, phases);
  if (!gradesInPlace(agent)) await partWith(scene, agent, opened);
}

/** Its lease ends with the run stage: from here on it is gone, or held for people and counted as that, or idle. */
async function partWith(
  { pool, sandboxes }: Scene,
  { of }: AgentOf,
  { runtime, sandbox: { id } }: OpenSandbox,
): Promise<void> {
  const row = await agentSandbox(pool, of.rolloutId, of.attempt);
  if (row?.keep) return sandboxes.keep(id, "its agent is done");
  const { keep } = of.config.sandbox;
  const held: Keeping = keep === "never" ? { is: "not-there" } : await keepSandbox(pool, id, holdMinutes(of), null);
  if (held.is === "kept") return sandboxes.keep(id, heldReason);
  // With the stage's lease it comes to stand by itself, for the run's next rollout to reset.
  if (row?.environment) return;
  const more = held.is === "no-room" ? `; not kept: ${noRoomWords(held)}` : "";
  return sandboxes.close(runtime, id, { reason: `its agent is done${more}` });
}

/** Until it is graded, at the longest: what nobody decides about goes by itself. */
const holdMinutes = ({ config }: AgentOf["of"]): number =>
  (maxEvaluateAttempts * config.dispatcher.stageTimeoutMs.evaluate) / 60_000 + config.sandbox.keepMinutes;

/**
 * Before the verdict is written, where the run keeps sandboxes: what was held for grading stays or goes, and one that was graded in
 * place is kept when the sweep finds the rollout over.
 */
export async function keepAfterGrading({ pool }: Scene, agent: AgentOf, success: boolean): Promise<void> {
  const { of } = agent;
  const { keep, keepMinutes } = of.config.sandbox;
  if (keep === "never") return;
  const stays = keep === "always" || !success;
  if (!gradesInPlace(agent)) return decideHeldSandbox(pool, of, stays ? keepMinutes : null);
  const row = stays ? await agentSandbox(pool, of.rolloutId, of.attempt) : null;
  if (row === null) return;
  const keeping = await keepSandbox(pool, row.id, keepMinutes, null);
  if (keeping.is === "no-room") await sayNotKept(pool, row.id, `not kept: ${noRoomWords(keeping)}`);
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
