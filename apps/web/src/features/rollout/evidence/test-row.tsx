"use client";
import type { TestStatus } from "@rolldeck/contracts/test-report";
import type { JSX } from "react";
import { CopyText } from "../../../design/copy-text.tsx";
import { join } from "../../../design/join.ts";
import { Mark, type MarkShape } from "../../../design/mark.tsx";
import { TextPreview } from "../../../design/text-preview.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { isFailing, type ReportedTest } from "./test-rows.ts";

/** Null: it is not known how it ended. */
const marks: Readonly<Record<TestStatus, MarkShape | null>> = {
  passed: "disc",
  failed: "triangle",
  error: "triangle",
  skipped: "ring",
  xfail: "half",
  missing: null,
};
const wantedWords = { "fail-to-pass": "fail to pass", "pass-to-pass": "pass to pass" } as const;

export function TestRow({
  test,
  open,
  onToggle,
}: {
  test: ReportedTest;
  open: boolean;
  onToggle(): void;
}): JSX.Element {
  const failing = isFailing(test);
  const tone = failing ? (test.wanted === null ? "text-paused" : "text-failed") : test.ok ? "text-done" : "text-g7";
  const mark = marks[test.status];
  const line = (
    <>
      <span aria-hidden="true" className={join("flex w-3 shrink-0 justify-center text-xs", tone)}>
        {mark === null ? "?" : <Mark shape={mark} size={9} />}
      </span>
      <span className={join("w-14 shrink-0 text-xs", tone)}>{test.status}</span>
      <span className="w-20 shrink-0 text-xs text-g7">{test.wanted ? wantedWords[test.wanted] : "not asked for"}</span>
      <span className={join("mono min-w-0 truncate text-sm", failing && test.wanted !== null && "font-medium")}>
        {visibleText(test.name)}
      </span>
      {test.message !== null && !open && (
        <span className="mono min-w-0 flex-1 truncate text-xs text-g7">
          {visibleText(test.message.split("\n")[0] ?? "")}
        </span>
      )}
    </>
  );
  return (
    <div className={join("border-b border-g2", open && "bg-g1")} data-test={test.name} data-ok={!failing}>
      {test.message === null ? (
        <div className="flex h-7 items-center gap-3 px-4">{line}</div>
      ) : (
        <button
          type="button"
          aria-expanded={open}
          onClick={onToggle}
          className="flex h-7 w-full items-center gap-3 px-4 text-left hover:bg-g1"
        >
          {line}
        </button>
      )}
      {open && test.message !== null && (
        <div className="flex flex-col gap-1 px-4 pb-2 pl-10">
          <TextPreview text={test.message} />
          <CopyText text={test.name}>copy name</CopyText>
        </div>
      )}
    </div>
  );
}
