"use client";
/** What was done in a sandbox, in order, with what went wrong in it. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import type { SandboxLogLine } from "@rolldeck/contracts/sandbox-log";
import { type JSX, type ReactNode, useDeferredValue, useMemo, useState } from "react";
import { Chip } from "../../../design/chip.tsx";
import { EmptyState } from "../../../design/empty-state.tsx";
import { join } from "../../../design/join.ts";
import { Mark } from "../../../design/mark.tsx";
import { Segmented } from "../../../design/segmented.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { formatBytes, formatCount } from "../../../format/numbers.ts";
import { formatDuration, formatMoment } from "../../../format/times.ts";
import { CutNotice, DownloadLink, EvidenceBar } from "./evidence-bar.tsx";
import { FilterInput } from "./filter-input.tsx";
import { logRows, readSandboxLog, subjectWords } from "./log-rows.ts";
import { RowList } from "./row-list.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";

export function SandboxLogView({
  text,
  info,
  place,
  onlyTrouble,
  onOnlyTrouble,
  choice,
}: {
  text: string;
  info: ArtifactInfo;
  place: ArtifactPlace;
  onlyTrouble: boolean;
  onOnlyTrouble(only: boolean): void;
  choice: ReactNode;
}): JSX.Element {
  const log = useMemo(() => readSandboxLog(text), [text]);
  const [words, setWords] = useState("");
  const asked = useDeferredValue(words);
  const rows = useMemo(() => logRows(log, onlyTrouble, asked), [log, onlyTrouble, asked]);
  return (
    <>
      <EvidenceBar>
        {choice}
        <Segmented
          label="Lines"
          options={[
            { value: "all", label: "All" },
            { value: "trouble", label: "Trouble only" },
          ]}
          value={onlyTrouble ? "trouble" : "all"}
          onChange={(value) => onOnlyTrouble(value === "trouble")}
        />
        <FilterInput label="Filter the log" value={words} onChange={setWords} />
        <span className="figures text-sm text-g7" role="status">
          {formatCount(rows.length)} of {formatCount(log.lines.length)}
        </span>
        {log.unreadable > 0 && <Chip tone="paused">{formatCount(log.unreadable)} lines could not be read</Chip>}
        <span className="flex-1" />
        <DownloadLink place={place} info={info} />
      </EvidenceBar>
      <CutNotice info={info} />
      {rows.length === 0 ? (
        <EmptyState title={log.lines.length === 0 ? "Nothing was done in it" : "No line is like that"}>
          {onlyTrouble && asked.trim() === "" && log.lines.length > 0 && (
            <p>Every command that is shown here ended well.</p>
          )}
        </EmptyState>
      ) : (
        <>
          <div
            aria-hidden="true"
            className="flex h-7 shrink-0 items-center gap-3 border-b border-g3 px-4 text-xs text-g7"
          >
            <span className="w-16 text-right" title="Since the sandbox was asked for">
              At
            </span>
            <span className="w-12">What</span>
            <span className="flex-1">Command or path</span>
            <span className="w-16 text-right">Took</span>
            <span className="w-10 text-right">Exit</span>
            <span className="w-16 text-right" title="Printed, or written">
              Size
            </span>
          </div>
          <RowList label="Sandbox log" count={rows.length} rowHeight={24}>
            {(index) => {
              const line = rows[index];
              return line ? <LogLine key={`${line.atMs} ${line.subject}`} line={line} /> : null;
            }}
          </RowList>
        </>
      )}
    </>
  );
}

/** One line; a click shows all of a command that is longer. */
function LogLine({ line }: { line: SandboxLogLine }): JSX.Element {
  const [open, setOpen] = useState(false);
  const failed = line.trouble !== null || (line.exitCode ?? 0) !== 0;
  const words = visibleText(subjectWords(line.subject));
  const all = line.subject.split("\n").map(visibleText).join("\n");
  return (
    <div className="border-b border-g2 px-4 hover:bg-g1" data-trouble={failed}>
      <div className="flex min-h-6 items-center gap-3">
        <span className="num w-16 shrink-0 text-right text-xs text-g7">{formatMoment(line.atMs)}</span>
        <span className="w-12 shrink-0 text-xs text-g7">{line.what}</span>
        {words === all ? (
          <span className="mono min-w-0 flex-1 truncate text-sm" title={words}>
            {words}
          </span>
        ) : (
          <button
            type="button"
            aria-expanded={open}
            title={open ? "Show one line of it" : "Show all of it"}
            onClick={() => setOpen(!open)}
            className="mono min-w-0 flex-1 truncate text-left text-sm hover:underline"
          >
            {words}
          </button>
        )}
        <span className="num w-16 shrink-0 text-right text-xs">
          {line.durationMs === null ? "" : formatDuration(line.durationMs)}
        </span>
        <span className={join("num w-10 shrink-0 text-right text-xs", (line.exitCode ?? 0) !== 0 && "text-failed")}>
          {line.exitCode ?? ""}
        </span>
        <span className="num w-16 shrink-0 text-right text-xs text-g7">
          {line.bytes === null ? "" : formatBytes(line.bytes)}
        </span>
      </div>
      {open && (
        <pre className="mono pb-1.5 pl-[136px] text-xs leading-4 whitespace-pre-wrap text-g8 [overflow-wrap:anywhere]">
          {all}
        </pre>
      )}
      {line.trouble !== null && (
        <div className="flex gap-3 pb-1.5 text-xs text-failed">
          <span className="flex w-[124px] shrink-0 justify-end pt-0.5 pr-1">
            <Mark shape="triangle" size={9} label="trouble" />
          </span>
          <pre className="mono min-w-0 flex-1 leading-4 whitespace-pre-wrap [overflow-wrap:anywhere]">
            {line.trouble.split("\n").map(visibleText).join("\n")}
          </pre>
        </div>
      )}
    </div>
  );
}
