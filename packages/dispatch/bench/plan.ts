/**
 * Time of one plan over 4,096 rollouts in every place a rollout can be. Run with `node --import tsx packages/dispatch/bench/plan.ts`;
 * the last line is one JSON object, milliseconds.
 */
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { RolloutSnapshot } from "@rolldeck/contracts/plan";
import { plan } from "../src/plan.ts";
import { dispatcherNames } from "../src/registry.ts";
import {
  buildConfig,
  buildGroup,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
  scored,
} from "../testing/build-snapshot.ts";

const rolloutCount = 4_096;
const rounds = 60;
const now = 1_000_000;

const place = (at: number): Partial<RolloutSnapshot> => {
  const stage: Stage = stages[at % 3] ?? "init";
  const readyAt = now - ((at * 7_919) % 10_000);
  const leaseUntil = now + ((at * 104_729) % 15_000) - 100;
  if (at % 5 < 3) return { stage, readyAt, ending: stage === "evaluate" ? "answer" : null };
  return { stage, readyAt, state: "active", leaseUntil, stageStartedAt: readyAt, holds: ["runSlot"] };
};

const rollouts = Array.from({ length: rolloutCount }, (_, at) => {
  const ids = { rolloutId: `rollout-${at}`, groupId: `group-${at >> 3}`, sample: at % 8 };
  return at % 11 === 0 ? scored(ids) : buildRollout({ ...place(at), ...ids });
});

const groups = Array.from({ length: rolloutCount >> 3 }, (_, at) =>
  buildGroup({ groupId: `group-${at}`, expectedMs: { init: 200, run: 350 + ((at * 7_919) % 1_000), evaluate: 200 } }),
);

function measure(name: string): { p50: number; max: number; actions: number } {
  const bounds = { init: 4_096, run: 4_096, evaluate: 4_096 };
  const config = buildConfig({ dispatcher: { name, bounds }, algorithm: { groupsPerStep: 512, groupSize: 8 } });
  const snapshot = buildSnapshot({
    config,
    steps: [buildStep()],
    rollouts,
    groups,
    held: { ...counts(0), runSlot: 1_490 },
  });
  const times: number[] = [];
  let actions = 0;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    actions = plan(snapshot, counts(4_096)).actions.length;
    times.push(performance.now() - start);
  }
  // The first rounds run before the compiler has seen the code.
  const warm = times.slice(10).sort((a, b) => a - b);
  const round = (ms: number | undefined) => Math.round((ms ?? 0) * 100) / 100;
  return { p50: round(warm[warm.length >> 1]), max: round(warm.at(-1)), actions };
}

process.stdout.write(`${JSON.stringify(Object.fromEntries(dispatcherNames.map((name) => [name, measure(name)])))}\n`);
