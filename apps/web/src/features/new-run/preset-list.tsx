"use client";
import { type PresetName, presets } from "@rolldeck/contracts/presets";
import type { JSX } from "react";
import { CodeText } from "../../design/code-text.tsx";
import { join } from "../../design/join.ts";
import { isPreset } from "./use-draft.ts";

/** Starting points as a plain list. */
export function PresetList({
  source,
  onChoose,
}: {
  /** Label of where the draft began. */
  source: string | null;
  onChoose(name: PresetName): void;
}): JSX.Element {
  return (
    <section aria-label="Presets">
      <h2 className="mb-1 text-sm text-g7">Start from a preset</h2>
      <ul className="border-y border-g3">
        {Object.entries(presets).map(([name, preset]) => {
          const here = source === `preset ${name}`;
          return (
            <li key={name} className="border-b border-g2 last:border-b-0">
              <button
                type="button"
                aria-pressed={here}
                data-preset={name}
                onClick={() => isPreset(name) && onChoose(name)}
                className={join(
                  "flex w-full items-baseline gap-4 px-2 py-1.5 text-left max-md:flex-col max-md:gap-0",
                  here ? "bg-accent-soft" : "hover:bg-g1",
                )}
              >
                <span className="w-56 shrink-0 font-medium">{preset.title}</span>
                <span className="text-g8">
                  <CodeText text={preset.summary} />
                </span>
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
