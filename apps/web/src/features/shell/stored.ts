"use client";
/** A preference of this browser (theme, density, drafts); the URL holds everything that a link should carry. */
import { useCallback, useSyncExternalStore } from "react";

const listeners = new Map<string, Set<() => void>>();

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(`rolldeck.${key}`);
  } catch {
    // Storage may be closed to us; preferences then last as long as the page.
    return null;
  }
}

export function writeStored(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`rolldeck.${key}`);
    else localStorage.setItem(`rolldeck.${key}`, value);
  } catch {
    return;
  }
  for (const listener of listeners.get(key) ?? []) listener();
}

export function useStored(key: string, fallback: string): [string, (value: string) => void] {
  const subscribe = useCallback(
    (listener: () => void) => {
      const set = listeners.get(key) ?? new Set();
      listeners.set(key, set.add(listener));
      window.addEventListener("storage", listener);
      return () => {
        set.delete(listener);
        window.removeEventListener("storage", listener);
      };
    },
    [key],
  );
  const value = useSyncExternalStore(
    subscribe,
    () => readStored(key) ?? fallback,
    () => fallback,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
