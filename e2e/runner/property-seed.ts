/**
 * Every property of a test run starts from one seed, so that a failure comes again with the same command. `npm test` always takes the
 * same one; the suite `fuzz` of `test:all` takes a new one each time and says which.
 *
 * Runs before each test file; those without properties do not pay for the library.
 */
import { readFileSync } from "node:fs";
import { expect } from "vitest";

const { testPath = "" } = expect.getState();
if (readFileSync(testPath, "utf8").includes("fast-check")) {
  const { default: fc } = await import("fast-check");
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.ROLLDECK_PROPERTY_SEED ?? 1) });
}
