import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ownFolder } from "./own-folder.ts";

const home = mkdtempSync(join(tmpdir(), "own-folder-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("a folder of this user's own", () => {
  test("is made for nobody else, and found again", () => {
    const path = join(home, "own");
    expect(ownFolder(path)).toBe(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(ownFolder(path)).toBe(path);
  });

  test("is neither one that others can write to nor a link", () => {
    const open = join(home, "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    symlinkSync(ownFolder(join(home, "other")), join(home, "link"));
    for (const name of ["open", "link"]) expect(() => ownFolder(join(home, name))).toThrow("not this user's alone");
  });
});
