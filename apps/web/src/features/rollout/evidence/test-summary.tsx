import type { TestReport } from "@rolldeck/contracts/test-report";
import type { JSX } from "react";
import { Chip } from "../../../design/chip.tsx";
import { CopyText } from "../../../design/copy-text.tsx";
import { Facts } from "../../../design/facts.tsx";
import { Mark } from "../../../design/mark.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { cutText, formatBytes, formatCount, formatNumber } from "../../../format/numbers.ts";
import { formatDuration } from "../../../format/times.ts";

import { passedOf, passedWords, type Sampled } from "../passed-of.ts";
import { gradePhaseWords } from "./grade-phase-words.ts";
import { patchFailure } from "./patch-failure.ts";

/** How the verdict came about: the patch, the command, its limit, what it was flagged for. */
export function TestSummary({
  report,
  samples,
  onOutput,
}: {
  report: TestReport;
  /** Rollouts of the same instance, this one included. */
  samples: readonly Sampled[];
  onOutput: (() => void) | null;
}): JSX.Element {
  const passed = passedOf(samples);
  const { command, metrics, flags, phases } = report;
  const numbers = Object.entries(metrics)
    .filter(([name]) => !countedBelow.test(name))
    .slice(0, 20);
  return (
    <section
      aria-label="Verdict"
      className="flex max-h-[40vh] shrink-0 flex-wrap gap-x-10 gap-y-2 overflow-auto border-b border-g3 px-4 py-3"
    >
      <div className="flex min-w-[320px] flex-1 flex-col gap-2">
        <div className="flex flex-wrap items-center gap-2">
          <Chip tone={report.success ? "done" : "failed"}>
            <Mark shape={report.success ? "disc" : "triangle"} size={9} />{" "}
            {report.success ? "resolved" : "not resolved"}
          </Chip>
          <span className="figures text-sm text-g7">
            by the rules of {visibleText(report.grader)}
            {passed && ` · ${passedWords(passed)}`}
          </span>
          {flags.map((flag) => (
            <Chip key={flag} tone="paused" title="For people to look at; never part of the reward">
              ⚑ {visibleText(flag)}
            </Chip>
          ))}
        </div>
        <Facts
          rows={[
            ["Patch", <PatchFact key="patch" report={report} />],
            [
              "Command",
              <span key="command" className="flex items-start gap-2">
                <code className="mono text-sm [overflow-wrap:anywhere]">{cutText(visibleText(command.text), 600)}</code>
                <CopyText text={command.text}> </CopyText>
              </span>,
            ],
            ["Ended", <CommandEnd key="end" command={command} onOutput={onOutput} />],
          ]}
        />
      </div>
      {(phases.length > 0 || numbers.length > 0) && (
        <div className="min-w-[200px]">
          <Facts
            rows={[
              ...phases.map(
                ({ name, durationMs }, index) =>
                  [
                    `${index + 1}. ${gradePhaseWords(name)}`,
                    <span key={name} className="num">
                      {formatDuration(durationMs)}
                    </span>,
                  ] as const,
              ),
              ...numbers.map(
                ([name, value]) =>
                  [
                    visibleText(name),
                    <span key={name} className="num">
                      {Number.isInteger(value) ? formatCount(value) : formatNumber(value)}
                    </span>,
                  ] as const,
              ),
            ]}
          />
        </div>
      )}
    </section>
  );
}

function PatchFact({ report: { patch } }: { report: TestReport }): JSX.Element {
  if (!patch) return <>none is asked for</>;
  const size = formatBytes(patch.bytes);
  if (patch.applied)
    return (
      <>
        {patch.bytes === 0 ? "empty" : `${size}, applied`}
        {patch.by && (
          <>
            {" by "}
            <code className="mono">{visibleText(patch.by)}</code>
          </>
        )}
        {unusual(patch.message) && <span className="text-g7"> · {inOneLine(unusual(patch.message))}</span>}
      </>
    );
  return (
    <span className="text-failed">
      ▲ {patchFailure(patch)}
      {patch.message && `: ${inOneLine(patch.message)}`}
    </span>
  );
}

function CommandEnd({
  command: { exitCode, timedOut, durationMs, timeoutMs },
  onOutput,
}: {
  command: TestReport["command"];
  onOutput: (() => void) | null;
}): JSX.Element {
  return (
    <span className="num">
      {timedOut ? (
        <span className="text-failed">▲ at its limit</span>
      ) : (
        `exit ${exitCode ?? "unknown"} after ${formatDuration(durationMs)}`
      )}
      <span className="text-g7"> (limit {formatDuration(timeoutMs)})</span>
      {onOutput && (
        <>
          {" · "}
          <button type="button" className="text-accent-text hover:underline" onClick={onOutput}>
            what it printed
          </button>
        </>
      )}
    </span>
  );
}

/** Counts that the choice of tests below has, too. */
const countedBelow = /^(?:fail|pass)_to_(?:fail|pass)(?:_ok)?$/u;

/** What git says of every patch that applies is left out. */
const unusual = (message: string | null): string =>
  (message ?? "")
    .split("\n")
    .filter((line) => !/^(?:Checking patch .*\.\.\.|Applied patch .* cleanly\.|)$/u.test(line.trim()))
    .join("\n");

/** What git said in several lines. */
const inOneLine = (message: string): string => visibleText(message.trim().replace(/\s*\n\s*/gu, " · "));
