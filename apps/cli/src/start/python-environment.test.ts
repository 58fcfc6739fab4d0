import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { preparePython } from "./python-environment.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-python-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** An interpreter that answers the probe with these versions. */
function interpreter(answer: string): string {
  const file = path.join(folder, "python");
  writeFileSync(file, `#!/bin/sh\necho '${answer}'\n`);
  chmodSync(file, 0o755);
  return file;
}

const prepare = (python: string) =>
  preparePython({
    root: folder,
    withTests: false,
    torch: undefined,
    env: { ...process.env, ROLLDECK_PYTHON: python },
    onProgress: () => undefined,
  });

describe("ROLLDECK_PYTHON", () => {
  it("is taken when it has torch 2.4 or newer", async () => {
    const file = interpreter("3.12|2.13.0+cpu");
    expect(await prepare(file)).toBe(file);
  });

  it.each([
    ["3.12|", /has no torch/],
    ["3.12|2.3.1", /has torch 2\.3; install torch 2\.4/],
    ["nonsense", /could not be run/],
  ])("answering %j is refused with what to do", async (answer, message) => {
    await expect(prepare(interpreter(answer))).rejects.toThrow(message);
  });

  it("is looked at once for all who ask for it meanwhile, and anew for those who ask later", async () => {
    const file = interpreter("3.12|2.13.0");
    writeFileSync(file, `${readFileSync(file, "utf8")}echo asked >> ${folder}/asked\n`);
    const asked = () => readFileSync(path.join(folder, "asked"), "utf8").trim().split("\n").length;
    expect(await Promise.all([prepare(file), prepare(file), prepare(file)])).toEqual([file, file, file]);
    expect(asked()).toBe(1);
    await prepare(file);
    expect(asked()).toBe(2);
  });

  it("that does not exist is refused by name", async () => {
    await expect(prepare("/nowhere/python")).rejects.toThrow("ROLLDECK_PYTHON=/nowhere/python could not be run");
  });
});
