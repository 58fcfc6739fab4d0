"use client";
/** A program's output in full, line by line, with its colours or without; words are found in all of it. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import { type JSX, type ReactNode, useDeferredValue, useMemo, useRef, useState } from "react";
import { CopyText } from "../../../design/copy-text.tsx";
import { EmptyState } from "../../../design/empty-state.tsx";
import { Segmented } from "../../../design/segmented.tsx";
import { formatCount } from "../../../format/numbers.ts";
import { AnsiText } from "./ansi-text.tsx";
import { CutNotice, DownloadLink, EvidenceBar } from "./evidence-bar.tsx";
import { FilterInput } from "./filter-input.tsx";
import { parseAnsi } from "./parse-ansi.ts";
import { RowList, type RowListHandle } from "./row-list.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";

type Look = "colour" | "plain";
const looks: readonly { readonly value: Look; readonly label: string }[] = [
  { value: "colour", label: "Colour" },
  { value: "plain", label: "Plain" },
];

export function OutputView({
  text,
  info,
  place,
  choice,
}: {
  text: string;
  /** Absent: the text is what a turn holds of it, not a file. */
  info?: ArtifactInfo;
  place: ArtifactPlace;
  /** What chooses among outputs. */
  choice: ReactNode;
}): JSX.Element {
  const { lines, moreLines } = useMemo(() => parseAnsi(text), [text]);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(-1);
  const [colour, setColour] = useState<Look>("colour");
  const list = useRef<RowListHandle>(null);
  const typed = words.trim().toLowerCase();
  const asked = useDeferredValue(typed);
  const found = useMemo(() => linesWith(lines, asked), [lines, asked]);
  const go = (backwards: boolean) => {
    // Enter may come before the page has caught up with the last letter.
    const places = typed === asked ? found : linesWith(lines, typed);
    if (places.length === 0) return;
    const from = at < 0 && backwards ? 0 : at;
    const next = (from + (backwards ? -1 : 1) + places.length) % places.length;
    setAt(next);
    list.current?.to(places[next] ?? 0);
  };
  const coloured = useMemo(() => lines.some((line) => line.spans !== null), [lines]);
  return (
    <>
      <EvidenceBar>
        {choice}
        <FilterInput
          label="Find in output"
          value={words}
          onChange={(value) => {
            setWords(value);
            setAt(-1);
          }}
          onEnter={go}
        />
        <span className="figures text-sm text-g7" role="status">
          {asked !== "" &&
            (found.length === 0 ? "not found" : `${at < 0 ? "" : `${at + 1} of `}${formatCount(found.length)} lines`)}
        </span>
        <span className="flex-1" />
        {coloured && (
          <Segmented label="Colours" options={looks} value={colour} onChange={(value: Look) => setColour(value)} />
        )}
        <span className="figures text-sm text-g7">
          {formatCount(lines.length)} {lines.length === 1 ? "line" : "lines"}
        </span>
        <CopyText text={text}>copy all</CopyText>
        {info && <DownloadLink place={place} info={info} />}
      </EvidenceBar>
      {info && <CutNotice info={info} />}
      {lines.length === 0 ? (
        <EmptyState title="It printed nothing" />
      ) : (
        <RowList label="Output" count={lines.length} rowHeight={18} handle={list}>
          {(index) => {
            const line = lines[index];
            return line ? (
              <div
                className={`mono flex text-sm leading-[18px] ${index === found[at] ? "bg-accent-soft" : ""}`}
                data-line={index + 1}
              >
                <span className="num w-14 shrink-0 pr-3 text-right text-xs leading-[18px] text-g7 select-none">
                  {index + 1}
                </span>
                <AnsiText line={line} plain={colour === "plain"} found={asked} />
              </div>
            ) : null;
          }}
        </RowList>
      )}
      {moreLines > 0 && (
        <p role="status" className="shrink-0 border-t border-g3 px-4 py-1 text-sm text-g7">
          {formatCount(moreLines)} more lines are in the file, not on this page.
        </p>
      )}
    </>
  );
}

/** Indices of the lines that hold the words, none for no words. */
const linesWith = (lines: ReturnType<typeof parseAnsi>["lines"], words: string): number[] =>
  words === "" ? [] : lines.flatMap((line, index) => (line.text.toLowerCase().includes(words) ? [index] : []));
