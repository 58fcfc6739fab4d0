"use client";
/** The terminal in the colours of the page: read from its tokens, and again when the theme changes. */
import type { ITheme } from "@xterm/xterm";

const bright = (name: string): string => `bright${name[0]?.toUpperCase()}${name.slice(1)}`;
const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

export function terminalTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const of = (token: string) => style.getPropertyValue(token).trim();
  const ansi = names.flatMap((name, index) => [
    [name, of(`--ansi-${index}`)],
    [bright(name), of(`--ansi-${index + 8}`)],
  ]);
  return {
    background: of("--g0"),
    foreground: of("--g9"),
    cursor: of("--accent"),
    cursorAccent: of("--g0"),
    selectionBackground: `${of("--accent")}47`,
    ...Object.fromEntries(ansi),
  };
}

/** @returns what stops it */
export function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}
