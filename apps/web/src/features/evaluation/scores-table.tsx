import type { EvaluationReport, EvaluationScores } from "@rolldeck/contracts/api/evaluation";
import { Fragment, type JSX } from "react";
import { Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { StatusWords } from "./evaluation-state.tsx";
import { IntervalMark, intervalText, percentText } from "./interval-mark.tsx";

/** One row per evaluation (and task set, when there are several): estimates with 95 % intervals over instances. */
export function ScoresTable({ report, manySets }: { report: EvaluationReport; manySets: boolean }): JSX.Element {
  // pass@1 is success itself.
  const ks = report.evaluations[0]?.all.passAt.map(({ k }) => k).filter((k) => k > 1) ?? [];
  return (
    <section aria-label="Scores">
      <h2 className="mb-1 text-lg font-semibold">Held-out scores</h2>
      <p className="mb-2 max-w-[760px] text-sm text-g7">
        pass@k: chance that at least one of k rollouts of an instance succeeds. ± is half of the 95 % interval over
        instances. Rollouts without a score are left out, never counted as 0.
      </p>
      <Table label="Held-out scores">
        <thead>
          <tr>
            <Th right>Version</Th>
            <Th>State</Th>
            {manySets && <Th>Task set</Th>}
            <Th title="Successes ÷ scored rollouts, each instance counted once; the same as pass@1">Success</Th>
            {ks.map((k) => (
              <Th key={k} right title={`Share of instances solved by at least one of ${k} rollouts`}>
                pass@{k}
              </Th>
            ))}
            <Th right>Reward</Th>
            <Th right title="Held-out instances of this evaluation">
              Instances
            </Th>
            <Th right title="Rollouts with a score ÷ rollouts of this evaluation">
              Scored
            </Th>
          </tr>
        </thead>
        <tbody>
          {report.evaluations.map(({ version, state, all, taskSets }) => (
            <Fragment key={version}>
              <tr className="hover:bg-g1">
                <Td right>{formatCount(version)}</Td>
                <Td className="text-sm whitespace-nowrap">
                  <StatusWords state={state} />
                </Td>
                {manySets && <Td className="text-sm text-g7">all</Td>}
                <ScoreCells scores={all} />
              </tr>
              {manySets &&
                taskSets.map(({ taskSet, scores }, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a config may name a task twice; its place tells which
                  <tr key={at} className="text-g8 hover:bg-g1">
                    <Td />
                    <Td />
                    <Td className="text-sm">{taskSet}</Td>
                    <ScoreCells scores={scores} />
                  </tr>
                ))}
            </Fragment>
          ))}
        </tbody>
      </Table>
    </section>
  );
}

function ScoreCells({ scores }: { scores: EvaluationScores }): JSX.Element {
  return (
    <>
      <Td>
        <IntervalMark estimate={scores.success} />
      </Td>
      {scores.passAt
        .filter(({ k }) => k > 1)
        .map(({ k, estimate }) => (
          <Td key={k} right className="whitespace-nowrap">
            {percentText(estimate)}
          </Td>
        ))}
      <Td right className="whitespace-nowrap" title={scores.reward ? formatNumber(scores.reward.value) : undefined}>
        {intervalText(scores.reward)}
      </Td>
      <Td right>{formatCount(scores.instances)}</Td>
      <Td right className="whitespace-nowrap">
        {formatCount(scores.scored)}
        <span className="text-g7">/{formatCount(scores.rollouts)}</span>
        {scores.unscored > 0 && <span className="ml-2 text-failed">{formatCount(scores.unscored)} without</span>}
      </Td>
    </>
  );
}
