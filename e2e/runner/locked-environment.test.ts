import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LockedEnvironment, prepareLocked } from "./locked-environment.ts";
import { lockAddress, withMachineLock } from "./machine-lock.ts";

let folder: string;
let before: string | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-locked-"));
  before = process.env.XDG_CACHE_HOME;
  process.env.XDG_CACHE_HOME = folder;
});
afterEach(() => {
  if (before === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = before;
  rmSync(folder, { recursive: true, force: true });
});

function environment(content: string): LockedEnvironment {
  const lock = path.join(folder, `${content}.lock`);
  writeFileSync(lock, content);
  return { name: "one", shelf: "shelf", lock };
}
const shelf = (): string[] => readdirSync(path.join(folder, "rolldeck/shelf")).sort();
/** Makes one slowly, as an installation does: with a file that must be there to its end. */
async function make(_: LockedEnvironment, made: string): Promise<void> {
  mkdirSync(path.join(made, "bin"), { recursive: true });
  writeFileSync(path.join(made, "bin/python"), "");
  await sleep(300);
  if (!existsSync(path.join(made, "bin/python"))) throw new Error("somebody removed what was being made");
}

describe("prepareLocked", () => {
  it("makes an environment once for all who ask meanwhile, and those of another lock beside it", async () => {
    let count = 0;
    const counted: typeof make = async (...given) => {
      count += 1;
      await make(...given);
    };
    const [a, b] = [environment("a"), environment("b")];
    const said: string[] = [];
    const asked = [a, a, b, a, b].map((one) => prepareLocked(one, (line) => said.push(line), counted));
    const pythons = await Promise.all(asked);
    expect(new Set(pythons).size).toBe(2);
    expect(pythons.every((python) => existsSync(python))).toBe(true);
    expect(count).toBe(2);
    expect(said.filter((line) => line.includes("waits until another process"))).toHaveLength(4);
  });

  it("makes one anew whose maker was killed, or failed", async () => {
    const failing = prepareLocked(
      environment("a"),
      () => undefined,
      async (_, made) => {
        mkdirSync(path.join(made, "torn"), { recursive: true });
        throw new Error("no network");
      },
    );
    await expect(failing).rejects.toThrow("no network");
    const python = await prepareLocked(environment("a"), () => undefined, make);
    expect(existsSync(python)).toBe(true);
    expect(existsSync(path.join(python, "../../torn"))).toBe(false);
  });

  it("removes those of other locks that nobody has used for a day, and no other", async () => {
    for (const content of ["a", "b"]) await prepareLocked(environment(content), () => undefined, make);
    expect(shelf()).toHaveLength(2);
    const old = new Date(Date.now() - 25 * 3_600_000);
    for (const name of shelf()) utimesSync(path.join(folder, "rolldeck/shelf", name, ".rolldeck-whole"), old, old);
    await prepareLocked(environment("a"), () => undefined, make);
    mkdirSync(path.join(folder, "rolldeck/shelf/other-1"));
    await prepareLocked(environment("c"), () => undefined, make);
    expect(shelf().map((name) => name.split("-")[0])).toEqual(["one", "one", "other"]);
  });
});

describe("withMachineLock", () => {
  it("waits for another process, and goes on when that is killed", async () => {
    const name = `test-${process.pid}-${Date.now()}`;
    const script = `require("node:net").createServer().listen(${JSON.stringify(lockAddress(name))}, () => console.log("held"))`;
    const holder = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(holder.stdout, "data");
    let waited = false;
    let entered = false;
    const work = withMachineLock(
      name,
      () => {
        waited = true;
      },
      async () => {
        entered = true;
      },
    );
    await expect.poll(() => waited).toBe(true);
    expect(entered).toBe(false);
    holder.kill("SIGKILL");
    await work;
    expect(entered).toBe(true);
  });
});
