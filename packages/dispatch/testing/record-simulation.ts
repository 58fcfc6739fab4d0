/** What production would record of a simulated run: the columns of `/runs/{id}/durations`. */
import type { Durations } from "@rolldeck/contracts/api/durations";
import type { Simulation } from "../src/simulator/simulation.ts";

/** @param upToStep later steps are left out */
export function recordSimulation({ spans, steps }: Simulation, upToStep = Number.POSITIVE_INFINITY): Durations {
  const over = steps.filter(
    ({ purpose, step, endedAt }) => purpose === "train" && endedAt !== null && step <= upToStep,
  );
  const until = Math.max(...over.map(({ endedAt }) => endedAt ?? 0));
  const rows = new Map<string, Simulation["spans"][number][]>();
  for (const span of spans) {
    if (span.endedAt === null || span.endedAt > until) continue;
    rows.set(span.rolloutId, [...(rows.get(span.rolloutId) ?? []), span]);
  }
  const rollouts: Durations["rollouts"] = {
    ...{
      taskSet: [],
      instanceIndex: [],
      initMs: [],
      reset: [],
      runMs: [],
      evaluateMs: [],
      modelMs: [],
      sampledTokens: [],
      turns: [],
    },
  };
  for (const own of rows.values()) {
    const [init, run, evaluate] = (["init", "run", "evaluate"] as const).map((stage) =>
      own.find((span) => span.stage === stage),
    );
    if (!init || !run || !evaluate) continue;
    const msOf = (span: typeof init): number => (span.endedAt ?? 0) - (span.startedAt ?? 0);
    rollouts.taskSet.push(init.instance.taskSet);
    rollouts.instanceIndex.push(init.instance.instanceIndex);
    rollouts.initMs.push(msOf(init));
    rollouts.reset.push(init.reset === true);
    rollouts.runMs.push(msOf(run));
    rollouts.evaluateMs.push(msOf(evaluate));
    rollouts.modelMs.push(msOf(run) / 2);
    rollouts.sampledTokens.push(100);
    rollouts.turns.push(2);
  }
  return {
    runId: "simulated",
    rollouts,
    steps: {
      step: over.map(({ step }) => step),
      stepMs: over.map(({ createdAt, endedAt }) => (endedAt ?? 0) - createdAt),
      updateMs: over.map(({ updateAt, endedAt }) => (endedAt ?? 0) - (updateAt ?? endedAt ?? 0)),
    },
  };
}
