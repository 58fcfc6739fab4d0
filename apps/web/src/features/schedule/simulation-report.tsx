"use client";
/** Predicted step times of all settings, against the present one and against what the run's steps took. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { SimulatedSetting, SimulationResult } from "@rolldeck/contracts/api/simulations";
import { type JSX, useState } from "react";
import { Button } from "../../design/button.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatFraction } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { ApplyDialog } from "./apply-dialog.tsx";

const shownSettings = 16;

export function SimulationReport({ run, result }: { run: RunDetail; result: SimulationResult }): JSX.Element {
  const [applying, setApplying] = useState<SimulatedSetting | null>(null);
  const [all, setAll] = useState(false);
  const { present, others } = result;
  const rows = [present, ...(all ? others : others.slice(0, shownSettings))];
  const slowest = rows.reduce((most, { stepMs }) => Math.max(most, stepMs.high), 0);
  return (
    <div className="flex flex-col gap-2">
      <Basis result={result} />
      {result.advice.length > 0 && (
        <ul aria-label="Advice" className="flex flex-col gap-0.5">
          {result.advice.map((sentence) => (
            <li key={sentence} className="before:mr-2 before:text-g7 before:content-['→']">
              {sentence}
            </li>
          ))}
        </ul>
      )}
      <Table label="Predicted step times">
        <thead>
          <tr>
            <Th>Policy</Th>
            <Th right title="bounds.init: rollouts in the init stage at once">
              Init
            </Th>
            <Th right title="bounds.run: rollouts in the run stage at once">
              Run
            </Th>
            <Th right title="bounds.evaluate: rollouts in the evaluate stage at once">
              Evaluate
            </Th>
            {result.sandboxed && (
              <Th right title="Size of the sandbox pool">
                Sandboxes
              </Th>
            )}
            <Th right title="Predicted time of one step, mean over the seeds">
              Step
            </Th>
            <Th right title="95 % interval over the seeds, by bootstrap">
              95 % interval
            </Th>
            <Th className="w-40">
              <span className="sr-only">Step time as a bar</span>
            </Th>
            <Th right title="Present step time ÷ this one">
              Speed-up
            </Th>
            <ActionsTh />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <SettingRow
              key={`${row.dispatcher} ${row.bounds.init} ${row.bounds.run} ${row.bounds.evaluate} ${row.sandboxes}`}
              run={run}
              row={row}
              present={present}
              slowest={slowest}
              sandboxed={result.sandboxed}
              onApply={() => setApplying(row)}
            />
          ))}
        </tbody>
      </Table>
      {others.length > shownSettings && (
        <div>
          <Button look="quiet" onClick={() => setAll(!all)}>
            {all ? "Show the fastest only" : `Show all ${formatCount(others.length + 1)} settings`}
          </Button>
        </div>
      )}
      {applying && <ApplyDialog run={run} from={present} to={applying} onClose={() => setApplying(null)} />}
    </div>
  );
}

/** Predicted against actual, and what the prediction rests on. */
function Basis({ result }: { result: SimulationResult }): JSX.Element {
  const { present, actualStepMs } = result;
  const off = actualStepMs === null || actualStepMs <= 0 ? null : present.stepMs.mean / actualStepMs - 1;
  return (
    <p data-testid="predicted" className="figures text-g8">
      Predicted step <span className="text-g9">{formatDuration(present.stepMs.mean)}</span>
      {off !== null && (
        <>
          , actual <span className="text-g9">{formatDuration(actualStepMs)}</span>
          <span className="text-g7">
            {" "}
            (median of {formatCount(result.steps)} step{result.steps === 1 ? "" : "s"}; the prediction is off by{" "}
            {off > 0 ? "+" : ""}
            {formatFraction(off)})
          </span>
        </>
      )}
      <span className="text-g7">
        {off === null && " (no step is over yet)"}, from{" "}
        {result.basis === "recorded"
          ? `stages of ${formatCount(result.rollouts)} recorded rollouts`
          : "assumed stages of 5 s, 60 s and 10 s: nothing was recorded yet"}
        , {formatCount(result.seeds)} seed{result.seeds === 1 ? "" : "s"}
      </span>
    </p>
  );
}

function SettingRow({
  run,
  row,
  present,
  slowest,
  sandboxed,
  onApply,
}: {
  run: RunDetail;
  row: SimulatedSetting;
  present: SimulatedSetting;
  slowest: number;
  sandboxed: boolean;
  onApply(): void;
}): JSX.Element {
  const isPresent = row === present;
  const differs = (value: number, was: number) => (value === was ? undefined : "font-semibold text-accent-text");
  const share = (ms: number) => `${slowest > 0 ? (ms / slowest) * 100 : 0}%`;
  // Slower settings are there to be read, not to be chosen; a policy and a pool are not the run's to change.
  const mayApply =
    run.endedAt === null &&
    (row.change?.mean ?? 0) < 0 &&
    row.dispatcher === present.dispatcher &&
    row.sandboxes === present.sandboxes &&
    boundsDiffer(row, present);
  return (
    <tr className={isPresent ? "bg-g1" : "hover:bg-g1"}>
      <Td className={row.dispatcher === present.dispatcher ? undefined : "font-semibold text-accent-text"}>
        {row.dispatcher}
        {isPresent && <span className="ml-2 text-sm text-g7">present</span>}
      </Td>
      <Td right className={differs(row.bounds.init, present.bounds.init)}>
        {formatCount(row.bounds.init)}
      </Td>
      <Td right className={differs(row.bounds.run, present.bounds.run)}>
        {formatCount(row.bounds.run)}
      </Td>
      <Td right className={differs(row.bounds.evaluate, present.bounds.evaluate)}>
        {formatCount(row.bounds.evaluate)}
      </Td>
      {sandboxed && (
        <Td right className={differs(row.sandboxes, present.sandboxes)}>
          {formatCount(row.sandboxes)}
        </Td>
      )}
      <Td right>{formatDuration(row.stepMs.mean)}</Td>
      <Td right className="text-g7">
        {formatDuration(row.stepMs.low)} – {formatDuration(row.stepMs.high)}
      </Td>
      <Td>
        <span aria-hidden="true" className="relative block h-2 rounded-[2px] bg-g2">
          <span className="absolute inset-y-0 left-0 rounded-[2px] bg-g6" style={{ width: share(row.stepMs.mean) }} />
          <span
            className="absolute inset-y-[3px] bg-g9"
            style={{ left: share(row.stepMs.low), width: share(row.stepMs.high - row.stepMs.low) }}
          />
        </span>
      </Td>
      <Td right>{(1 / (1 + (row.change?.mean ?? 0))).toFixed(2)}×</Td>
      <Td className="text-right">
        {mayApply && (
          <Button small onClick={onApply}>
            Apply
          </Button>
        )}
      </Td>
    </tr>
  );
}

const boundsDiffer = (a: SimulatedSetting, b: SimulatedSetting): boolean =>
  a.bounds.init !== b.bounds.init || a.bounds.run !== b.bounds.run || a.bounds.evaluate !== b.bounds.evaluate;
