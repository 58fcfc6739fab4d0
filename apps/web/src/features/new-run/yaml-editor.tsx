"use client";
import type { JSX } from "react";
import { Button } from "../../design/button.tsx";
import { downloadText } from "../../format/download.ts";

/** The same config as text; what is typed here is what the form shows, comments kept. */
export function YamlEditor({
  text,
  onChange,
  error,
}: {
  text: string;
  onChange(text: string): void;
  error: { readonly message: string; readonly line: number | null } | null;
}): JSX.Element {
  const lines = text.split("\n").length;
  return (
    <div className="flex flex-col gap-2">
      <div className="flex rounded-md border border-g4 bg-g1 focus-within:border-accent">
        <pre aria-hidden="true" className="mono py-2 pr-2 pl-3 text-right text-sm leading-[18px] text-g7 select-none">
          {Array.from({ length: Math.max(lines, 20) }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: line numbers
            <span key={index} className={error?.line === index + 1 ? "block text-failed" : "block"}>
              {index + 1}
            </span>
          ))}
        </pre>
        <textarea
          aria-label="Config as YAML"
          aria-invalid={error !== null}
          spellCheck={false}
          value={text}
          wrap="off"
          rows={Math.max(lines, 20)}
          onChange={(event) => onChange(event.target.value)}
          className="mono min-w-0 flex-1 resize-none overflow-x-auto bg-transparent py-2 pr-3 text-sm leading-[18px] whitespace-pre outline-none"
        />
      </div>
      <div>
        <Button onClick={() => downloadText("run.yaml", "application/yaml", text)}>Save as run.yaml</Button>
      </div>
    </div>
  );
}
