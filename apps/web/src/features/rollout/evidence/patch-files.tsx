"use client";
import type { JSX } from "react";
import { join } from "../../../design/join.ts";
import { visibleText } from "../../../design/visible-text.ts";
import { formatCount } from "../../../format/numbers.ts";
import type { PatchFile } from "./parse-patch.ts";
import { changeWords, pathOf } from "./patch-rows.ts";

/** More than these are not listed beside; all of them are in the lines. */
const maxListed = 500;
const marks = { added: "+", deleted: "−", renamed: "→", copied: "⧉", changed: "•" } as const;
const tones = {
  added: "text-done",
  deleted: "text-failed",
  renamed: "text-running",
  copied: "text-running",
  changed: "text-g7",
} as const;

export function PatchFiles({
  files,
  current,
  onSelect,
}: {
  files: readonly PatchFile[];
  current: number;
  onSelect(index: number): void;
}): JSX.Element {
  return (
    <nav
      aria-label="Changed files"
      className="w-[280px] shrink-0 overflow-auto border-r border-g3 py-1 max-[1100px]:w-[200px] max-md:hidden"
    >
      <ul>
        {files.slice(0, maxListed).map((file, index) => {
          const path = visibleText(pathOf(file));
          const slash = path.lastIndexOf("/") + 1;
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a file is its place in the patch
            <li key={index}>
              <button
                type="button"
                aria-current={index === current || undefined}
                title={[path, changeWords(file)].filter(Boolean).join(": ")}
                onClick={() => onSelect(index)}
                className={join(
                  "flex h-7 w-full items-center gap-1.5 px-3 text-left text-sm",
                  index === current ? "bg-accent-soft" : "hover:bg-g1",
                )}
              >
                <span aria-hidden="true" className={join("num w-3 shrink-0 text-center", tones[file.change])}>
                  {marks[file.change]}
                </span>
                <span className="sr-only">{file.change}</span>
                <span className="flex min-w-0 flex-1 items-baseline gap-1.5">
                  <span className="max-w-full shrink-0 truncate">{path.slice(slash)}</span>
                  <span className="truncate text-xs text-g7 [direction:rtl]">
                    <bdi>{path.slice(0, Math.max(0, slash - 1))}</bdi>
                  </span>
                </span>
                <span className="num shrink-0 text-xs">
                  {file.added > 0 && <span className="text-done">+{formatCount(file.added)}</span>}{" "}
                  {file.removed > 0 && <span className="text-failed">−{formatCount(file.removed)}</span>}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      {files.length > maxListed && (
        <p className="px-3 py-1 text-xs text-g7">
          {formatCount(files.length - maxListed)} more files are in the list of lines.
        </p>
      )}
    </nav>
  );
}
