"use client";
/** What the agent changed: files beside, lines of all of them in one list. Text is shown as text, hidden characters by name. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type JSX, useEffect, useMemo, useRef, useState } from "react";
import { Chip } from "../../../design/chip.tsx";
import { CopyText } from "../../../design/copy-text.tsx";
import { EmptyState } from "../../../design/empty-state.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { cutText, formatCount } from "../../../format/numbers.ts";
import { useKeys } from "../../shell/keys.ts";
import { CutNotice, DownloadLink, EvidenceBar } from "./evidence-bar.tsx";
import { parsePatch } from "./parse-patch.ts";
import { PatchFiles } from "./patch-files.tsx";
import { PatchRowView, rowHeight } from "./patch-row.tsx";
import { patchRows, pathOf } from "./patch-rows.ts";
import type { ArtifactPlace } from "./use-artifact-text.ts";

/** Longer lines are cut where they are shown. */
const maxColumns = 2_000;

export function PatchView({
  text,
  info,
  place,
  file,
  onFile,
}: {
  text: string;
  info: ArtifactInfo;
  place: ArtifactPlace;
  /** Path of the file that the address names. */
  file: string | null;
  onFile(path: string): void;
}): JSX.Element {
  const patch = useMemo(() => parsePatch(text), [text]);
  const rows = useMemo(() => patchRows(patch), [patch]);
  const columns = useMemo(
    () => rows.reduce((most, row) => Math.max(most, row.kind === "line" ? row.line.text.length : 0), 60),
    [rows],
  );
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => rowHeight(rows[index]),
    overscan: 30,
  });
  // A path may stand twice, as where a file became a link: then the address alone does not say which.
  const [chosen, setChosen] = useState(-1);
  const last = patch.files[chosen];
  const current =
    last && pathOf(last) === file
      ? chosen
      : Math.max(
          0,
          patch.files.findIndex((each) => pathOf(each) === file),
        );
  const go = (index: number) => {
    const target = patch.files[index];
    if (!target) return;
    setChosen(index);
    onFile(pathOf(target));
    virtual.scrollToIndex(
      rows.findIndex((row) => row.kind === "file" && row.index === index),
      { align: "start" },
    );
  };
  useFirstPlace(current, go);
  useKeys("Patch", [
    { keys: "]", label: "Next file", run: () => go(Math.min(patch.files.length - 1, current + 1)) },
    { keys: "[", label: "Previous file", run: () => go(Math.max(0, current - 1)) },
  ]);
  return (
    <>
      <EvidenceBar>
        {patch.files.length > 0 && (
          <>
            <span className="figures text-sm text-g7">
              {formatCount(patch.files.length)} {patch.files.length === 1 ? "file" : "files"}
            </span>
            <Counts added={patch.added} removed={patch.removed} />
          </>
        )}
        {patch.cut && <Chip tone="paused">cut short: not all of it is here</Chip>}
        {patch.strayLines > 0 && (
          <Chip title="Lines that belong to no file and no hunk">{formatCount(patch.strayLines)} other lines</Chip>
        )}
        <span className="flex-1" />
        <CopyText text={text}>copy all</CopyText>
        <DownloadLink place={place} info={info} />
      </EvidenceBar>
      <CutNotice info={info} />
      {patch.files.length === 0 ? (
        <EmptyState title={text.trim() === "" ? "The patch is empty" : "This is no patch that can be shown"}>
          <p>
            {text.trim() === ""
              ? "The agent left the files as they were."
              : "No file was found in it. The raw bytes can be downloaded above."}
          </p>
        </EmptyState>
      ) : (
        <div className="flex min-h-0 flex-1">
          {patch.files.length > 1 && <PatchFiles files={patch.files} current={current} onSelect={go} />}
          <section
            ref={scroller}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
            tabIndex={0}
            aria-label="Changed lines"
            className="min-h-0 min-w-0 flex-1 overflow-auto"
          >
            <div
              className="relative"
              style={{
                height: virtual.getTotalSize(),
                minWidth: `max(100%, calc(${Math.min(columns, maxColumns)} * 7.3px + 120px))`,
              }}
            >
              {virtual.getVirtualItems().map((item) => {
                const row = rows[item.index];
                return row ? (
                  <div
                    key={item.key}
                    className="absolute inset-x-0"
                    style={{ transform: `translateY(${item.start}px)`, height: item.size }}
                  >
                    <PatchRowView row={row} text={row.kind === "line" ? shown(row.line.text) : ""} />
                  </div>
                ) : null;
              })}
            </div>
          </section>
        </div>
      )}
    </>
  );
}

export function Counts({ added, removed }: { added: number; removed: number }): JSX.Element {
  return (
    <span
      className="num inline-flex gap-1.5 text-sm"
      role="img"
      aria-label={`${added} lines added, ${removed} removed`}
    >
      <span className="text-done">+{formatCount(added)}</span>
      <span className="text-failed">−{formatCount(removed)}</span>
    </span>
  );
}

function shown(text: string): string {
  const plain = visibleText(text.replace(/\t/gu, "    "));
  return plain.length <= maxColumns
    ? plain
    : `${cutText(plain, maxColumns)} … ${formatCount(plain.length - maxColumns)} more characters`;
}

/** The file that the address names is gone to once, when the patch is there. */
function useFirstPlace(current: number, go: (index: number) => void): void {
  const latest = useRef({ current, go });
  latest.current = { current, go };
  useEffect(() => {
    if (latest.current.current > 0) latest.current.go(latest.current.current);
  }, []);
}
