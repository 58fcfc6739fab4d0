"use client";
/** What the run's steps were predicted to take, against what they took. */
import type { PredictionReport } from "@rolldeck/contracts/api/predictions";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import { type JSX, useState } from "react";
import { Button } from "../../design/button.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatFraction } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

const shownSteps = 6;
const definition =
  "Made once per run by the planner in virtual time, before the steps it speaks of. A step's time runs from its start, or the end of the step before where they overlap, to the end of its update; pauses count.";

export function PredictionPanel({
  prediction,
  ended,
}: {
  prediction: PredictionReport | null;
  ended: boolean;
}): JSX.Element {
  return (
    <section aria-label="Predicted against actual" className="flex flex-col gap-1.5">
      <h2 className="font-semibold" title={definition}>
        Predicted against actual
      </h2>
      {prediction === null ? <NoPrediction ended={ended} /> : <Prediction prediction={prediction} />}
    </section>
  );
}

const NoPrediction = ({ ended }: { ended: boolean }): JSX.Element => (
  <p className="text-sm text-g7">
    {ended
      ? "None was made: no earlier run had the same task sets, model and backend, and no step of this one was over."
      : "None yet: no earlier run had the same task sets, model and backend. One is made from this run's first step, once that is over."}
  </p>
);

function Prediction({ prediction }: { prediction: PredictionReport }): JSX.Element {
  const [every, setEvery] = useState(false);
  const { taken, stepMs, all, changed } = prediction;
  const newestFirst = taken.step.map((_, at) => at).reverse();
  const rows = every ? newestFirst : newestFirst.slice(0, shownSteps);
  return (
    <>
      <p data-testid="predicted-actual" className="figures text-g8">
        Predicted step <span className="text-g9">{formatDuration(stepMs.mean)}</span>
        {stepMs.high > stepMs.low && (
          <span className="text-g7">
            {" "}
            ({formatDuration(stepMs.low)} – {formatDuration(stepMs.high)})
          </span>
        )}
        {all === null ? (
          <span className="text-g7">; no step that it speaks of is over yet</span>
        ) : (
          <>
            , actual <span className="text-g9">{formatDuration(all.actualMs / all.steps)}</span> over {count(all.steps)}
            : <strong>the prediction is off by {signed(all.error)}</strong>
          </>
        )}
        <span className="text-g7">
          . All {formatCount(prediction.steps)} steps: {formatDuration(prediction.makespanMs)}.
        </span>
      </p>
      <p className="text-sm text-g7">{basisText(prediction)}</p>
      {changed && (
        <p className="text-sm text-g8">
          The policy, a bound or the sandbox pool was changed since: it speaks of the run as it was.
        </p>
      )}
      <Waits prediction={prediction} />
      {rows.length > 0 && <Steps prediction={prediction} rows={rows} />}
      {taken.step.length > shownSteps && (
        <div>
          <Button look="quiet" onClick={() => setEvery(!every)}>
            {every ? "Show the newest only" : `Show all ${formatCount(taken.step.length)} steps`}
          </Button>
        </div>
      )}
    </>
  );
}

function Steps({ prediction, rows }: { prediction: PredictionReport; rows: readonly number[] }): JSX.Element {
  const { step, predictedMs, actualMs, error, forecast } = prediction.taken;
  return (
    <div className="max-w-[640px]">
      <Table label="Predicted and actual step times">
        <thead>
          <tr>
            <Th right>Step</Th>
            <Th right>Predicted</Th>
            <Th right>Actual</Th>
            <Th right title="Predicted ÷ actual − 1">
              Error
            </Th>
            <Th>
              <span className="sr-only">Remark</span>
            </Th>
          </tr>
        </thead>
        <tbody>
          {rows.map((at) => (
            <tr key={step[at]} className="hover:bg-g1">
              <Td right>{step[at]}</Td>
              <Td right>{formatDuration(predictedMs[at] ?? 0)}</Td>
              <Td right>{formatDuration(actualMs[at] ?? 0)}</Td>
              <Td right>{signed(error[at] ?? 0)}</Td>
              <Td className="text-g7">{forecast[at] ? "" : "predicted from it: not counted"}</Td>
            </tr>
          ))}
        </tbody>
      </Table>
    </div>
  );
}

/** Of the shown step. */
function Waits({ prediction: { waits, actualWaits } }: { prediction: PredictionReport }): JSX.Element | null {
  if (actualWaits === null) return null;
  const all = (of: Record<Stage, number>) => stages.reduce((sum, stage) => sum + of[stage], 0);
  return (
    <p
      className="figures text-sm text-g7"
      title="Shares of the rollouts' time from being ready for a stage to its end, over stages that are over"
    >
      Waiting in the shown step: predicted {percent(all(waits))}, actual {percent(all(actualWaits))} (
      {stages.map((stage) => `${stage} ${percent(waits[stage])} / ${percent(actualWaits[stage])}`).join(", ")})
    </p>
  );
}

const count = (steps: number): string => `${formatCount(steps)} step${steps === 1 ? "" : "s"}`;
/** To a tenth of a percent: a prediction is not surer than that. */
const percent = (share: number): string => formatFraction(Math.round(share * 1000) / 1000);
/** Ten times as long and more is said as such. */
const signed = (error: number): string =>
  error >= 9 ? `${formatCount(Math.round(error + 1))} times` : `${error > 0 ? "+" : ""}${percent(error)}`;

function basisText({ basis, seeds, dispatcher, bounds }: PredictionReport): string {
  const setting = `${dispatcher} with ${bounds.init}, ${bounds.run} and ${bounds.evaluate} at once`;
  const rollouts = `${formatCount(basis.rollouts)} rollouts`;
  const from =
    basis.from === "earlier-runs"
      ? `${rollouts} of ${formatCount(basis.runIds.length)} earlier run${basis.runIds.length === 1 ? "" : "s"} with the same task sets, model and backend`
      : `the ${rollouts} of its own step${basis.step === 1 ? " 1" : `s up to ${basis.step}`}`;
  return `From ${from}; ${setting}; ${count(seeds).replace("step", "seed")}.`;
}
