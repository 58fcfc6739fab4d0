/** A stored prediction held against what the run's steps took. Pure. */
import type { PredictionReport } from "@rolldeck/contracts/api/predictions";
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { stages } from "@rolldeck/contracts/lifecycle";
import type { DispatchedRun } from "@rolldeck/db/reads/read-dispatched";
import type { PredictionRows } from "@rolldeck/db/reads/read-prediction";
import { waitShares } from "@rolldeck/dispatch/simulator/predict-run";

/** @param spans of the shown step */
export function predictionReport(
  { madeAt, prediction, taken }: PredictionRows,
  dispatched: DispatchedRun,
  spans: Schedule["spans"],
): PredictionReport {
  const { stepMs, firstStepMs, basis } = prediction;
  const steps = taken
    .filter(({ actualMs }) => actualMs > 0)
    .map(({ step, actualMs }) => ({
      step,
      actualMs,
      predictedMs: step === 1 ? firstStepMs : stepMs.mean,
      forecast: basis.from === "earlier-runs" || step > basis.step,
    }));
  const forecast = steps.filter((step) => step.forecast);
  const [predictedMs, actualMs] = [
    sum(forecast.map((step) => step.predictedMs)),
    sum(forecast.map((step) => step.actualMs)),
  ];
  return {
    ...prediction,
    madeAt,
    changed: isChanged(prediction, dispatched),
    taken: {
      step: steps.map(({ step }) => step),
      predictedMs: steps.map((step) => step.predictedMs),
      actualMs: steps.map((step) => step.actualMs),
      error: steps.map((step) => step.predictedMs / step.actualMs - 1),
      forecast: steps.map((step) => step.forecast),
    },
    all:
      forecast.length === 0
        ? null
        : { steps: forecast.length, predictedMs, actualMs, error: predictedMs / actualMs - 1 },
    actualWaits: waitShares(spansOf(spans)),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function isChanged(prediction: PredictionRows["prediction"], { config, pools }: DispatchedRun): boolean {
  const { name, bounds } = config.dispatcher;
  const pool = pools.sandbox ?? prediction.sandboxes;
  return (
    name !== prediction.dispatcher ||
    pool !== prediction.sandboxes ||
    stages.some((stage) => bounds[stage] !== prediction.bounds[stage])
  );
}

function* spansOf({ stage, readyMs, startedMs, endedMs }: Schedule["spans"]) {
  for (const [at, place] of stage.entries()) {
    const name = stages[place];
    if (name === undefined) continue;
    yield { stage: name, readyAt: readyMs[at] ?? 0, startedAt: startedMs[at] ?? null, endedAt: endedMs[at] ?? null };
  }
}
