"use client";
import { type JSX, useState } from "react";
import { cutText, formatCount } from "../format/numbers.ts";
import { join } from "./join.ts";

const foldAt = 1200;

/**
 * Text from a model, tool or user: shown as text only, never as markup. Long text folds with its size; control codes of
 * terminals are dropped so that they can neither run nor leak.
 */
export function TextPreview({
  text,
  cutCharacters = 0,
  className,
}: {
  text: string;
  cutCharacters?: number;
  className?: string;
}): JSX.Element {
  const [open, setOpen] = useState(false);
  const plain = stripControlCodes(text);
  const lines = plain.split("\n");
  const long = plain.length > foldAt || lines.length > 24;
  const shown = !long || open ? plain : cutText(lines.slice(0, 16).join("\n"), foldAt);
  return (
    <div className="min-w-0">
      <pre className={join("mono text-sm leading-[18px] whitespace-pre-wrap [overflow-wrap:anywhere]", className)}>
        {shown}
        {long && !open && "…"}
      </pre>
      {(long || cutCharacters > 0) && (
        <div className="mt-1 flex items-center gap-3 text-xs text-g7">
          {long && (
            <button type="button" className="text-accent-text hover:underline" onClick={() => setOpen(!open)}>
              {open
                ? "Show less"
                : `Show all (${formatCount(plain.length)} characters, ${formatCount(lines.length)} lines)`}
            </button>
          )}
          {cutCharacters > 0 && <span>{formatCount(cutCharacters)} more characters are stored but not shown here</span>}
        </div>
      )}
    </div>
  );
}

const controlCodes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[@-Z\\-_]?|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** CSI, OSC and single control characters out; a carriage return keeps only the last state of its line. */
export function stripControlCodes(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .split("\n")
    .map((line) => {
      const plain = line.replace(controlCodes, (match) => (match === "\r" ? match : ""));
      const states = plain.split("\r").filter((state) => state !== "");
      return states.at(-1) ?? "";
    })
    .join("\n");
}
