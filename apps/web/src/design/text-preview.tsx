"use client";
import { type JSX, useState } from "react";
import { cutText, formatCount } from "../format/numbers.ts";
import { join } from "./join.ts";
import { stripControlCodes } from "./strip-control-codes.ts";

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
