import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fleetSecret } from "./secrets.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-secrets-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the fleet's secret", () => {
  test("is made once, for its owner's eyes; a variable that is blank is none", () => {
    const made = fleetSecret(folder, undefined);
    expect(made.length).toBeGreaterThanOrEqual(32);
    expect(fleetSecret(folder, "")).toBe(made);
    expect(statSync(path.join(folder, "secrets/fleet-secret")).mode & 0o777).toBe(0o600);
  });

  test("is the given one where it is long enough, and a short one is refused without being shown", () => {
    expect(fleetSecret(folder, "s".repeat(32))).toBe("s".repeat(32));
    expect(() => fleetSecret(folder, "hunter2")).toThrow(
      /^ROLLDECK_FLEET_SECRET: must be at least 32 characters(?!.*hunter2)/,
    );
  });
});
