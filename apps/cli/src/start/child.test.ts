import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Child } from "./child.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-child-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const node = (code: string, more: Partial<ConstructorParameters<typeof Child>[0]> = {}): Child =>
  new Child({
    name: "probe",
    command: process.execPath,
    args: ["-e", code],
    cwd: folder,
    env: { PATH: process.env.PATH ?? "" },
    channel: false,
    logFolder: folder,
    stopping: new AbortController().signal,
    ...more,
  });

describe("Child", () => {
  it("is not started again once the stack stops, although nobody has told it yet", async () => {
    const stack = new AbortController();
    const restarts: (number | null)[] = [];
    const child = node("setTimeout(() => process.exit(0), 100)", {
      stopping: stack.signal,
      onRestart: (code) => restarts.push(code),
    });
    child.start();
    stack.abort();
    await vi.waitFor(() => expect(child.pid).toBeUndefined(), { timeout: 5_000 });
    child.start();
    expect(child.pid).toBeUndefined();
    expect(restarts).toEqual([]);
    await child.stop(1_000);
  });

  it("starts a process again after it ends, logs what it says, and never after stop", async () => {
    const lines: string[] = [];
    let restarts = 0;
    const twice = new Promise<void>((resolve) => {
      const child = node("console.log('hello'); process.exit(3)", {
        onLine: (line) => lines.push(line),
        onRestart: (code, _signal, said) => {
          expect([code, said]).toEqual([3, "hello"]);
          restarts += 1;
          if (restarts === 2) void child.stop(1000).then(resolve);
        },
      });
      child.start();
    });
    await twice;
    expect(lines).toEqual(["hello", "hello"]);
    expect(readFileSync(path.join(folder, "probe.log"), "utf8")).toContain("hello");
  });

  it("kills a process that ignores SIGTERM", async () => {
    const child = node("process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)");
    const up = new Promise<void>((resolve) => {
      const poll = setInterval(() => {
        if (!child.tail.includes("up")) return;
        clearInterval(poll);
        resolve();
      }, 20);
    });
    child.start();
    await up;
    await child.stop(200);
    expect(child.pid).toBeUndefined();
  });
});
