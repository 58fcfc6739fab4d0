"use client";
/** What the verifier's tests said: the verdict and how it came about, then each test, what fails first. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import { TestReport } from "@rolldeck/contracts/test-report";
import { type JSX, useDeferredValue, useMemo, useState } from "react";
import { EmptyState } from "../../../design/empty-state.tsx";
import { Segmented } from "../../../design/segmented.tsx";
import { formatCount } from "../../../format/numbers.ts";
import type { Sampled } from "../passed-of.ts";
import { DownloadLink, EvidenceBar } from "./evidence-bar.tsx";
import { FilterInput } from "./filter-input.tsx";
import { RowList } from "./row-list.tsx";
import { TestRow } from "./test-row.tsx";
import { countTests, type TestShow, testRows, testShows } from "./test-rows.ts";
import { TestSummary } from "./test-summary.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";

const labels: Readonly<Record<TestShow, string>> = {
  all: "All",
  failing: "Failing",
  "fail-to-pass": "Fail to pass",
  "pass-to-pass": "Pass to pass",
  others: "Others",
};

export function readReport(text: string): TestReport | null {
  try {
    return TestReport.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

export function TestResults({
  text,
  info,
  place,
  show,
  onShow,
  onOutput,
  samples,
}: {
  text: string;
  info: ArtifactInfo;
  place: ArtifactPlace;
  /** Rollouts of the same instance. */
  samples: readonly Sampled[];
  show: TestShow;
  onShow(show: TestShow): void;
  /** Leads to what the command printed; null where nothing is kept of it. */
  onOutput: (() => void) | null;
}): JSX.Element {
  const report = useMemo(() => readReport(text), [text]);
  const [words, setWords] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const asked = useDeferredValue(words);
  const rows = useMemo(() => testRows(report?.tests ?? [], show, asked), [report, show, asked]);
  if (!report)
    return (
      <>
        <EvidenceBar>
          <span className="flex-1" />
          <DownloadLink place={place} info={info} />
        </EvidenceBar>
        <EmptyState title="The report can't be read">
          <p>
            {info.storedBytes < info.bytes
              ? "It was larger than what is kept of a file, so its middle is missing."
              : "It is not of the form that this page shows."}{" "}
            Its bytes can be downloaded above.
          </p>
        </EmptyState>
      </>
    );
  const toggle = (name: string) => {
    const next = new Set(open);
    if (!next.delete(name)) next.add(name);
    setOpen(next);
  };
  return (
    <>
      <TestSummary report={report} samples={samples} onOutput={onOutput} />
      <EvidenceBar>
        <Segmented
          label="Tests"
          options={testShows.map((value) => {
            const { ok, all } = countTests(report.tests, value);
            const count = value === "failing" ? formatCount(all) : `${formatCount(ok)}/${formatCount(all)}`;
            return { value, label: `${labels[value]} ${count}` };
          })}
          value={show}
          onChange={onShow}
        />
        <FilterInput label="Filter tests" value={words} onChange={setWords} />
        <span className="figures text-sm text-g7" role="status">
          {rows.length < report.tests.length && `${formatCount(rows.length)} of ${formatCount(report.tests.length)}`}
        </span>
        <span className="flex-1" />
        <DownloadLink place={place} info={info} />
      </EvidenceBar>
      {rows.length === 0 ? (
        <EmptyState title={report.tests.length === 0 ? "The report names no test" : "No test is like that"}>
          {report.tests.length > 0 && <p>Take words out of the filter, or show all tests.</p>}
        </EmptyState>
      ) : (
        <RowList label="Test results" count={rows.length} rowHeight={28}>
          {(index) => {
            const test = rows[index];
            return test ? <TestRow test={test} open={open.has(test.name)} onToggle={() => toggle(test.name)} /> : null;
          }}
        </RowList>
      )}
    </>
  );
}
