import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chooseDataFolder, enterableByOthers } from "./data-folder.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(path.join(tmpdir(), "rolldeck-data-"));
  chmodSync(base, 0o711);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("chooseDataFolder", () => {
  const choose = (parts: { asked?: string; xdg?: string; root?: string; needsOthers?: boolean }) =>
    chooseDataFolder({
      asked: parts.asked,
      root: parts.root ?? base,
      xdgDataHome: parts.xdg,
      needsOthers: parts.needsOthers ?? false,
    });

  it("takes the folder that was asked for, then XDG, then the clone", () => {
    expect(choose({ asked: path.join(base, "a") }).path).toBe(path.join(base, "a"));
    expect(choose({ xdg: path.join(base, "x") }).path).toBe(path.join(base, "x/rolldeck"));
    expect(choose({}).path).toBe(path.join(base, ".rolldeck"));
    expect(existsSync(path.join(base, ".rolldeck"))).toBe(true);
  });

  it("goes elsewhere, and says so, when another user could not enter the clone", () => {
    const home = path.join(base, "home");
    mkdirSync(home, { mode: 0o700 });
    const chosen = choose({ root: home, needsOthers: true });
    expect(chosen.path.startsWith(home)).toBe(false);
    expect(chosen.notice).toContain("--data-dir");
  });

  it("refuses a folder asked for by name that another user could not enter", () => {
    const home = path.join(base, "home");
    mkdirSync(home, { mode: 0o700 });
    expect(() => choose({ asked: path.join(home, "data"), needsOthers: true })).toThrow(/chmod o\+x/);
  });

  it("tells whether others may pass, missing folders ignored", () => {
    expect(enterableByOthers(path.join(base, "not/there"))).toBe(true);
    chmodSync(base, 0o700);
    expect(enterableByOthers(path.join(base, "not/there"))).toBe(false);
  });
});
