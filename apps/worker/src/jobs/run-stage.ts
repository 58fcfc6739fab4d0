/**
 * Run stage: the turn loop. Each turn is durable before its tools run, their results before the next turn. A stage that was
 * begun elsewhere is continued from its last committed turn, or given back when that can't be done.
 */
import {
  canContinue,
  type RolloutEnd,
  type RolloutPorts,
  type RolloutSpec,
  runRollout,
} from "@rolldeck/agent/core/run-rollout";
import type { Trajectory } from "@rolldeck/agent/core/trajectory";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StageJob } from "@rolldeck/contracts/jobs";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { NewEvidence, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { readEvidence } from "@rolldeck/db/artifacts";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { readTrajectory } from "@rolldeck/db/hot/read-trajectory";
import { callTool } from "../call-tool.ts";
import { dialectNamed } from "../dialect-named.ts";
import { nextStep } from "../next-step.ts";
import { maxTurnsOf, taskOf, toolSpecs } from "../rollout-task.ts";
import { lostState, rolloutTools } from "../rollout-tools.ts";
import { servingSampler } from "../sampling/serving-sampler.ts";
import { WaitingSampler } from "../sampling/waiting-sampler.ts";
import { collectFromAgent } from "../sandboxes/agent-stage.ts";
import { saveArtifact } from "../save-artifact.ts";
import { saveEvidence } from "../save-evidence.ts";
import { StageAbort } from "../stage-abort.ts";
import { stageJob } from "../stage-job.ts";
import { type TimeLimit, timeLimit } from "../time-limit.ts";
import type { WorkerContext } from "../worker-context.ts";

/** Longer than a re-adoption with its replay (at most 10 minutes by the checkpoint cadence). */
const maxAwayMs = 900_000;

export function runStage(context: WorkerContext, job: StageJob): Promise<void> {
  return stageJob(context, job, async (claimed, signal) => {
    const { task, instance } = await taskOf(context.openedTasks, claimed);
    const of = { ...claimed, rolloutId: job.rolloutId };
    const opened =
      task.sandbox === "none" ? null : await context.sandboxes.attachAgent(job.rolloutId, job.attempt, signal);
    const { tools, close } = await rolloutTools(context, task, claimed.config, signal, opened?.sandbox);
    const limit = timeLimit(agentTimeLeftMs(context, claimed, task, instance), signal);
    const over = new AbortController();
    try {
      const resume = await earlierTurns(context, job, claimed, tools);
      const spec: RolloutSpec = {
        rolloutId: job.rolloutId,
        seed: claimed.seed,
        messages: task.messages(instance),
        tools: toolSpecs(tools),
        dialect: dialectNamed(claimed.config.agent.dialect),
        tokenizer: await context.tokenizers.load(claimed.config.model),
        agent: claimed.config.agent,
        defaults: task.defaults,
        maxTurns: maxTurnsOf(claimed.config, claimed.taskSet, task),
        temperature: temperatureOf(claimed),
      };
      const acting = { task, tools, instance, sandbox: opened?.sandbox ?? null, ended: over.signal, limit };
      const ports = rolloutPorts(context, job, claimed, acting, signal);
      const end = await withinLimit(runRollout(spec, resume, ports, limit.signal), limit);
      const { turns = null, ...ending } = end;
      if (opened !== null) {
        const all = turns ?? (await turnsNow(context, job));
        await collectFromAgent(context, { of, task, instance }, opened, all, signal);
      }
      return { move: "next-stage", stage: "evaluate", ...ending };
    } finally {
      over.abort();
      limit.end();
      await close();
    }
  });
}

/** Counted over all workers that had the stage, without the time in which none had it; null = no limit. */
function agentTimeLeftMs(
  context: WorkerContext,
  claimed: ClaimedStage,
  task: Task,
  instance: TaskInstance,
): number | null {
  const maxMs = task.maxRunMs?.(instance) ?? null;
  return maxMs === null ? null : claimed.stageStartedAtMs + maxMs - context.databaseNow();
}

/** `turns` is absent where the work was cut off: then rows know. */
type AgentEnd = Pick<RolloutEnd, "ending" | "finalAnswer" | "reason"> & Partial<Pick<RolloutEnd, "turns">>;

/** A limit that was reached is an ending: what is committed stands, what was under way is not. */
async function withinLimit(rollout: Promise<RolloutEnd>, limit: TimeLimit): Promise<AgentEnd> {
  try {
    const { ending, finalAnswer, reason, turns } = await rollout;
    return { ending, finalAnswer, reason, turns };
  } catch (error) {
    if (!limit.isOver()) throw error;
    return { ending: "time_limit", finalAnswer: null, reason: "the agent's time was over" };
  }
}

/** Committed turns of all agents of the attempt. */
const turnsNow = async ({ pool }: WorkerContext, { rolloutId, attempt }: StageJob): Promise<number> =>
  (await readTrajectory(pool, rolloutId, attempt)).turns.length;

const temperatureOf = ({ config, purpose }: ClaimedStage): number =>
  purpose === "evaluate"
    ? (config.evaluation.temperature ?? config.agent.sampling.temperature)
    : config.agent.sampling.temperature;

/**
 * @throws BoundaryError("infrastructure") when a call was open whose tool can't run twice, or one was made whose effect lived in
 *   the process that is gone
 */
async function earlierTurns(
  context: WorkerContext,
  job: StageJob,
  claimed: ClaimedStage,
  tools: readonly Tool[],
): Promise<Trajectory | null> {
  if (claimed.turns === 0) return null;
  const trajectory = await readTrajectory(context.pool, job.rolloutId, job.attempt);
  const harmless = (name: string) => {
    const tool = tools.find((known) => known.name === name);
    return tool === undefined || tool.idempotent || tool.delegate !== undefined;
  };
  if (!canContinue(trajectory, harmless)) {
    throw new BoundaryError("infrastructure", "open_call", "a tool call was under way when the worker was lost");
  }
  const lost = lostState(trajectory, tools);
  if (lost !== null) {
    throw new BoundaryError("infrastructure", "lost_state", `what ${lost} kept went with the worker that was lost`);
  }
  return trajectory;
}

interface Acting {
  readonly task: Task;
  readonly tools: readonly Tool[];
  readonly instance: TaskInstance;
  readonly sandbox: Sandbox | null;
  /** Aborts when this worker's part of the rollout is over. */
  readonly ended: AbortSignal;
  readonly limit: TimeLimit;
}

function rolloutPorts(
  context: WorkerContext,
  job: StageJob,
  claimed: ClaimedStage,
  { task, tools, instance, sandbox, ended, limit }: Acting,
  stageSignal: AbortSignal,
): RolloutPorts {
  const { rolloutId, attempt } = job;
  const claim = { runId: claimed.runId, rolloutId, attempt, claim: claimed.claim };
  // What tools keep for this rollout hangs on it.
  const rollout = {};
  const timeoutMs = claimed.config.agent.toolTimeoutMs;
  const sampler = new WaitingSampler({
    runId: claimed.runId,
    watch: (runId) => context.runs.get(runId),
    samplerFor: (serving, onWait) => servingSampler(context, claimed, serving, onWait),
    beforeTry: () => handBackIfAsked(context, claimed.runId),
    onWait: context.waits.of(claimed.runId),
    // Nobody's work: an agent has its time for its own.
    onLost: (ms) => limit.giveBack(ms),
    maxAwayMs,
    pauseMs: 100,
    now: () => performance.now(),
  });
  return {
    sample: (request, signal) => sampler.sample(request, signal),
    callTool: async (call, agent, signal) => {
      const scope = { instance: instance.state, agent, rollout, signal, timeoutMs, ended, ...(sandbox && { sandbox }) };
      const outcome = await callTool(tools, call, scope);
      if (sandbox === null) return outcome;
      const keep = (evidence: NewEvidence) => saveEvidence(context.pool, claim, agent.turn, evidence, stageSignal);
      const kept = (name: string) => readEvidence(context.pool, claim, name);
      const scene = { task, instance, sandbox, keep, kept };
      // Its tests are no work of the agent's.
      return limit.without(() => nextStep(scene, { call, agent, outcome }, stageSignal));
    },
    delegate: (call, agent) => {
      const tool = tools.find(({ name }) => name === call.name);
      return tool?.delegate?.(call.arguments, { instance: instance.state, agent }) ?? null;
    },
    saveArtifact: (artifact) => saveArtifact(context.pool, claim, artifact, stageSignal),
    commitTurn: async (turn, segments) => {
      await context.writer.write({ kind: "turn", ...claim, turn, segments });
    },
    commitResults: async (results) => {
      await context.writer.write({ kind: "tools", ...claim, ...results });
    },
    now: () => performance.now(),
  };
}

/** Before a model call all earlier turns and results are committed: the boundary at which another worker can take over. */
function handBackIfAsked(context: WorkerContext, runId: string): void {
  if (context.stopping.aborted) throw new StageAbort("hand-back", "the worker is stopping");
  if (context.pausing(runId)) throw new StageAbort("hand-back", "the run is pausing");
}
