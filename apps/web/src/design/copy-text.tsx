"use client";
import { type JSX, type ReactNode, useEffect, useState } from "react";
import { Icon } from "./icon.tsx";
import { join } from "./join.ts";

/** Copies; falls back to a selection where the clipboard is closed (plain http on another host). */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function useCopied(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return [copied, (text) => void copy(text).then(() => setCopied(true))];
}

/** Short text shown, whole text copied on click. */
export function CopyText({ text, children }: { text: string; children?: ReactNode }): JSX.Element {
  const [copied, run] = useCopied();
  return (
    <button
      type="button"
      title={copied ? "Copied" : `Copy ${text}`}
      aria-label={`Copy ${text}`}
      onClick={(event) => {
        event.stopPropagation();
        run(text);
      }}
      className="mono inline-flex shrink-0 items-center gap-1 rounded text-sm whitespace-nowrap text-g7 hover:text-g9"
    >
      {children ?? text}
      <span className={join("inline-flex", copied ? "text-done" : "opacity-60")}>
        <Icon name={copied ? "check" : "copy"} size={12} />
      </span>
    </button>
  );
}

/** A command or file in a box with a copy button. */
export function CodeBlock({
  text,
  label,
  maxHeight,
}: {
  text: string;
  label: string;
  maxHeight?: number | string;
}): JSX.Element {
  const [copied, run] = useCopied();
  return (
    <section
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      style={{ maxHeight }}
      className="overflow-auto rounded-md border border-g3 bg-g1 p-2 pl-3"
    >
      <button
        type="button"
        onClick={() => run(text)}
        aria-label={`Copy ${label}`}
        className="sticky top-0 float-right ml-2 inline-flex h-6 items-center gap-1 rounded bg-g1 px-1.5 text-xs text-g7 hover:bg-g3 hover:text-g9"
      >
        <Icon name={copied ? "check" : "copy"} size={12} />
        {copied ? "Copied" : "Copy"}
      </button>
      <pre className="mono py-1 text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</pre>
    </section>
  );
}
