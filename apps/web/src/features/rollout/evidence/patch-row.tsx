import type { JSX } from "react";
import { CopyText } from "../../../design/copy-text.tsx";
import { join } from "../../../design/join.ts";
import { visibleText } from "../../../design/visible-text.ts";
import { formatCount } from "../../../format/numbers.ts";
import { changeWords, type PatchRow, pathOf } from "./patch-rows.ts";

export const rowHeight = (row: PatchRow | undefined): number =>
  row?.kind === "file" ? 34 : row?.kind === "line" ? 20 : 26;

const grounds = { added: "bg-done-soft", removed: "bg-failed-soft", context: "", note: "" } as const;
const signs = { added: "+", removed: "−", context: " ", note: " " } as const;
const signTones = { added: "text-done", removed: "text-failed", context: "text-g7", note: "" } as const;

/** @param text of a line, as it is shown */
export function PatchRowView({ row, text }: { row: PatchRow; text: string }): JSX.Element {
  if (row.kind === "file") return <FileRow row={row} />;
  if (row.kind === "hunk")
    return <div className="mono flex h-full items-center bg-g1 px-4 text-xs text-g7">{visibleText(row.header)}</div>;
  if (row.kind === "empty") return <div className="flex h-full items-center px-4 text-sm text-g7">{row.words}</div>;
  const { kind, oldLine, newLine } = row.line;
  return (
    <div className={join("mono flex h-full text-sm leading-5 whitespace-pre", grounds[kind])} data-line={kind}>
      <span className="num w-12 shrink-0 pr-2 text-right text-xs leading-5 text-g7 select-none">{oldLine}</span>
      <span className="num w-12 shrink-0 border-r border-g3 pr-2 text-right text-xs leading-5 text-g7 select-none">
        {newLine}
      </span>
      <span aria-hidden="true" className={join("w-5 shrink-0 text-center select-none", signTones[kind])}>
        {signs[kind]}
      </span>
      {kind !== "context" && kind !== "note" && <span className="sr-only">{kind}: </span>}
      <span className={kind === "note" ? "text-g7 italic" : undefined}>{text}</span>
    </div>
  );
}

function FileRow({ row: { file } }: { row: Extract<PatchRow, { kind: "file" }> }): JSX.Element {
  const words = changeWords(file);
  return (
    <div className="sticky left-0 flex h-full items-center gap-3 border-y border-g3 bg-g2 px-4">
      <h3 className="mono text-sm font-medium">{visibleText(pathOf(file))}</h3>
      <CopyText text={pathOf(file)}> </CopyText>
      {words && <span className="text-xs text-g7">{visibleText(words)}</span>}
      <span className="num text-xs">
        {file.added > 0 && <span className="text-done">+{formatCount(file.added)}</span>}{" "}
        {file.removed > 0 && <span className="text-failed">−{formatCount(file.removed)}</span>}
      </span>
    </div>
  );
}
