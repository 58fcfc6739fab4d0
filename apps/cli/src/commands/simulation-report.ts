/** A prediction as text for people and as one JSON value for programs. */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Advice } from "@rolldeck/dispatch/simulator/advise";
import type { Prediction } from "@rolldeck/dispatch/simulator/prediction";
import type { SplitAdvice } from "@rolldeck/dispatch/simulator/split-advice";
import { significant, table } from "./output.ts";

export interface Report {
  readonly kind: RunConfig["kind"];
  readonly basis: "recorded" | "assumed";
  /** Rollouts that were recorded. */
  readonly rollouts: number;
  readonly seeds: number;
  readonly advice: Advice;
  readonly split: SplitAdvice | null;
  /** Median of the recorded run's steps, milliseconds. */
  readonly actualStepMs: number | null;
}

/** Settings that a table for people shows. */
const shown = 12;

export function reportText({ kind, basis, rollouts, seeds, advice, split, actualStepMs }: Report): string {
  const { present, others, sentences } = advice;
  const from = basis === "recorded" ? `durations of ${rollouts} recorded rollouts` : "assumed durations";
  const rows = [present, ...others.slice(0, shown)].map(({ setting, stepMs, change }) => [
    setting.dispatcher,
    setting.bounds.init,
    setting.bounds.run,
    setting.bounds.evaluate,
    setting.sandboxes,
    duration(stepMs.mean),
    `${duration(stepMs.low)} to ${duration(stepMs.high)}`,
    change === null ? "now" : signedPercent(change.mean),
  ]);
  const head = ["policy", "init", "run", "evaluate", "sandboxes", "step", "95 % interval", "change"];
  return [
    `predicted step: ${duration(present.stepMs.mean)}, from ${from}, ${seeds} seed${seeds === 1 ? "" : "s"}`,
    ...actual(present, actualStepMs),
    use(present),
    waiting(present),
    "",
    table(head, rows),
    "",
    ...sentences.map((sentence) => `● ${sentence}`),
    ...splitText(kind, split),
  ].join("\n");
}

/** How many sampler replicas keep the trainer busy; where nobody said what an update takes, how to say it. */
function splitText(kind: Report["kind"], split: SplitAdvice | null): string[] {
  if (split === null)
    return kind === "train"
      ? ["", "with --update <s>, or --from-run of a run with updates, sampler replicas are weighed against the trainer"]
      : [];
  const rows = split.rows.map(({ replicas, stepMs, trainerWaits }) => [
    replicas,
    duration(stepMs),
    `${Math.round(trainerWaits * 100)} %`,
  ]);
  const head = [`sampler replicas (${split.dispatcher})`, "step", "trainer waits"];
  return ["", table(head, rows), "", `● ${split.sentence}`];
}

function actual({ stepMs }: Prediction, actualStepMs: number | null): string[] {
  if (actualStepMs === null || actualStepMs <= 0) return [];
  const error = signedPercent(stepMs.mean / actualStepMs - 1);
  return [`actual step: ${duration(actualStepMs)} (median); the prediction is off by ${error}`];
}

function use({ simulation }: Prediction): string {
  const { initSlot, runSlot, gradeSlot, sandbox } = simulation.busy;
  const parts = { "init slots": initSlot, "run slots": runSlot, "grading slots": gradeSlot, sandboxes: sandbox };
  return `in use: ${Object.entries(parts)
    .map(([name, share]) => `${name} ${Math.round(share * 100)} %`)
    .join(", ")}`;
}

const waitNames: Readonly<Record<string, string>> = {
  sandbox: "sandboxes",
  "init-slot": "init slots",
  "run-slot": "run slots",
  "grade-slot": "grading slots",
  gpu: "the engine's tokens",
  "back-off": "back-off",
  engine: "planner and queue",
};

/** Shares of the time that rollouts wait. */
function waiting({ simulation }: Prediction): string {
  const all = Object.values(simulation.waits).reduce((sum, ms) => sum + ms, 0);
  if (all === 0) return "rollouts wait for nothing";
  const parts = Object.entries(simulation.waits)
    .filter(([, ms]) => ms >= 0.01 * all)
    .sort(([, a], [, b]) => b - a)
    .map(([cause, ms]) => `${waitNames[cause] ?? cause} ${Math.round((ms / all) * 100)} %`);
  return `waiting: ${parts.join(", ")}`;
}

export function reportJson({ kind, basis, rollouts, seeds, advice, split, actualStepMs }: Report) {
  const row = ({ setting, stepMs, change, simulation }: Prediction) => ({
    ...setting,
    stepMs,
    change,
    busy: simulation.busy,
    waitMs: simulation.waits,
    trainerIdleMs: simulation.trainerIdleMs,
    trainerOnlyMs: simulation.trainerOnlyMs,
    staleness: simulation.staleness,
  });
  return {
    kind,
    basis,
    rollouts,
    seeds,
    actualStepMs,
    present: row(advice.present),
    settings: advice.others.map(row),
    advice: [...advice.sentences],
    split,
  };
}

/** `8.2 min`, `41 s`, `920 ms` */
export function duration(ms: number): string {
  if (ms < 1_000) return `${significant(ms)} ms`;
  if (ms < 120_000) return `${significant(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${significant(ms / 60_000)} min` : `${significant(ms / 3_600_000)} h`;
}

function signedPercent(share: number): string {
  const percent = Math.round(share * 1000) / 10;
  return `${percent < 0 ? "−" : percent > 0 ? "+" : ""}${Math.abs(percent)} %`;
}
