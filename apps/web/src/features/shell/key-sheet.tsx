"use client";
import type { JSX } from "react";
import { Dialog } from "../../design/dialog.tsx";
import { Kbd } from "../../design/kbd.tsx";
import { useKeySections } from "./keys.ts";

const names: Record<string, string> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Enter: "↵",
  Escape: "Esc",
  " ": "Space",
};
const parts = (keys: string): string[] => {
  if (keys.startsWith("mod+"))
    return ["⌘", keys.slice(4).length === 1 ? keys.slice(4).toUpperCase() : (names[keys.slice(4)] ?? keys.slice(4))];
  if (names[keys]) return [names[keys]];
  return keys.length === 2 ? [...keys] : [keys];
};

export function KeySheet({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }): JSX.Element {
  const sections = useKeySections().toReversed();
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keys" width={620}>
      <div className="columns-2 gap-8">
        {sections.map((section) => (
          <section key={section.title} className="mb-3 break-inside-avoid">
            <h3 className="mb-1 text-sm text-g7">{section.title}</h3>
            <ul>
              {section.bindings.map((binding) => (
                <li key={binding.keys} className="flex h-7 items-center justify-between gap-4">
                  <span>{binding.label}</span>
                  <span className="flex gap-1">
                    {parts(binding.keys).map((part, index) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one key never move
                      <Kbd key={index}>{part}</Kbd>
                    ))}
                  </span>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      <p className="mt-3 border-t border-g3 pt-3 text-sm text-g7">
        On Windows and Linux, ⌘ is Ctrl. Single keys rest while you type.
      </p>
    </Dialog>
  );
}
