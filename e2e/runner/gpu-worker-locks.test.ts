/** The locks of the GPU worker's image belong to its requirements. That `cuda` still resolves is asked in the suite `fleet-image`. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const folder = path.resolve(import.meta.dirname, "../../infra/gpu-worker");
const read = (name: string): string => readFileSync(path.join(folder, name), "utf8");
const meant = ["requirements-image.txt", "requirements.txt"]
  .flatMap((name) => read(name).split("\n"))
  .map((line) => line.trim())
  .filter((line) => line !== "" && !line.startsWith("#"))
  .join("\n");

describe.each(["cpu", "cuda"])("the lock of variant %s", (variant) => {
  const lock = read(`locks/${variant}.txt`);
  // Each requirement with what follows it on the lines that go on.
  const packages = lock
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => /^\w/.test(line));

  test("was made of the requirements as they are; else run infra/gpu-worker/locks/make_locks.py", () => {
    expect(/^# requirements: (\w+)$/m.exec(lock)?.[1]).toBe(createHash("sha256").update(meant).digest("hex"));
  });

  test("pins every package with a hash, and has what its name says", () => {
    expect(packages.length).toBeGreaterThan(30);
    for (const line of packages) expect(line).toMatch(/^[\w.-]+==\S+ +--hash=sha256:[0-9a-f]{64}/);
    expect(packages.filter((line) => /^(nvidia|cuda|triton)-?/.test(line)).length > 0).toBe(variant === "cuda");
    const [torch] = packages.filter((line) => line.startsWith("torch=="));
    expect(torch?.split(" ")[0]).toBe(`${/^torch==\S+$/m.exec(meant)?.[0]}${variant === "cpu" ? "+cpu" : ""}`);
  });
});
