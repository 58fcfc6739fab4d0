"use client";
/**
 * The keyboard, in one place. Single keys stand down while typing, in dialogs and on controls that use them themselves;
 * combinations with ⌘/Ctrl work everywhere. Whatever is registered is what the `?` sheet lists.
 */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface KeyBinding {
  /** `j`, `Enter`, `G`, `gg`, `ArrowLeft`, `mod+k`. */
  readonly keys: string;
  readonly label: string;
  run(event: KeyboardEvent): void;
}
interface Section {
  readonly title: string;
  readonly bindings: readonly KeyBinding[];
}

let sections: readonly Section[] = [];
const listeners = new Set<() => void>();
let previous: { readonly key: string; readonly at: number } | null = null;
const sequenceMs = 600;

function setSections(next: readonly Section[]): void {
  sections = next;
  for (const listener of listeners) listener();
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));

/** Enter and Space belong to the focused control, arrows to grids, tabs and lists that move inside themselves. */
function belongsToControl(event: KeyboardEvent): boolean {
  if (!(event.target instanceof HTMLElement)) return false;
  if (event.key === "Enter" || event.key === " ") return event.target.matches("button, a, summary, [role=button]");
  if (event.key.startsWith("Arrow"))
    return event.target.closest("[role=grid], [role=tablist], [role=listbox]") !== null;
  return false;
}

const standsDown = (event: KeyboardEvent): boolean =>
  isTyping(event.target) || belongsToControl(event) || document.querySelector('[role="dialog"]') !== null;

function pressed(event: KeyboardEvent): string[] {
  if (event.altKey) return [];
  if (event.metaKey || event.ctrlKey) return [`mod+${event.key.length === 1 ? event.key.toLowerCase() : event.key}`];
  const now = performance.now();
  const sequence = previous && now - previous.at < sequenceMs ? [`${previous.key}${event.key}`] : [];
  previous = { key: event.key, at: now };
  return [...sequence, event.key];
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const names = pressed(event);
  const combination = names[0]?.startsWith("mod+") ?? false;
  if (!combination && standsDown(event)) return;
  for (const name of names) {
    for (const section of sections.toReversed()) {
      const binding = section.bindings.find((candidate) => candidate.keys === name);
      if (!binding) continue;
      event.preventDefault();
      binding.run(event);
      return;
    }
  }
}

/** Registers while mounted; the newest section wins a key. */
export function useKeys(title: string, bindings: readonly KeyBinding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  const shape = bindings.map((binding) => `${binding.keys} ${binding.label}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the bindings; `latest` reads them when pressed
  useEffect(() => {
    const section: Section = {
      title,
      bindings: latest.current.map((binding) => ({
        ...binding,
        run: (event) => latest.current.find((candidate) => candidate.keys === binding.keys)?.run(event),
      })),
    };
    if (sections.length === 0) document.addEventListener("keydown", onKeyDown);
    setSections([...sections, section]);
    return () => {
      setSections(sections.filter((candidate) => candidate !== section));
      if (sections.length === 0) document.removeEventListener("keydown", onKeyDown);
    };
  }, [title, shape]);
}

const none: readonly Section[] = [];
export const useKeySections = (): readonly Section[] =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => sections,
    () => none,
  );
