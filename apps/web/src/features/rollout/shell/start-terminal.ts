"use client";
/**
 * A terminal in a box of the page, joined to a shell in a sandbox. What the sandbox says is drawn by the terminal and nothing else: its
 * links lead nowhere, it can't reach the clipboard, the title or the window.
 */
import type { ShellEnd } from "@rolldeck/contracts/wire/shell";
import { ShellConnection } from "@rolldeck/realtime/client/shell-connection";
import { onThemeChange, terminalTheme } from "./terminal-theme.ts";

export interface TerminalOptions {
  readonly box: HTMLElement;
  readonly runId: string;
  readonly sandboxId: string;
  readonly onOpen: () => void;
  readonly onEnd: (end: ShellEnd) => void;
  /** The key that leaves the terminal was pressed. */
  readonly onLeave: () => void;
}
export interface StartedTerminal {
  focus(): void;
  close(): void;
}

const font = '"JetBrains Mono Variable", ui-monospace, monospace';
/** Programs in the sandbox don't get it: with it a keyboard leaves the terminal. */
export const leaveKey = "F6";

export async function startTerminal(options: TerminalOptions): Promise<StartedTerminal> {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("@xterm/xterm"), import("@xterm/addon-fit")]);
  await document.fonts.load(`13px ${font}`).catch(() => undefined);
  const terminal = new Terminal({
    fontFamily: font,
    fontSize: 13,
    scrollback: 5_000,
    theme: terminalTheme(),
    linkHandler: { activate: () => undefined },
    disableStdin: true,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(options.box);
  fit.fit();
  const connection = new ShellConnection({
    asked: { runId: options.runId, sandboxId: options.sandboxId, columns: terminal.cols, rows: terminal.rows },
    onOpen: () => {
      terminal.options.disableStdin = false;
      terminal.focus();
      options.onOpen();
    },
    onOutput: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    onEnd: (end) => {
      terminal.options.disableStdin = true;
      options.onEnd(end);
    },
  });
  const encoder = new TextEncoder();
  terminal.onData((text) => connection.write(encoder.encode(text)));
  terminal.onBinary((text) => connection.write(Uint8Array.from(text, (each) => each.charCodeAt(0))));
  terminal.onResize(({ cols, rows }) => connection.resize(cols, rows));
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== leaveKey) return true;
    event.preventDefault();
    if (event.type === "keydown") options.onLeave();
    return false;
  });
  const stopTheme = onThemeChange(() => {
    terminal.options.theme = terminalTheme();
  });
  const watch = new ResizeObserver(() => fit.fit());
  watch.observe(options.box);
  return {
    focus: () => terminal.focus(),
    close() {
      watch.disconnect();
      stopTheme();
      connection.close();
      terminal.dispose();
    },
  };
}
