/**
 * `npm test` and `npm run test:all`: runs every suite in order, prints each one's counts, and ends with one line
 * `N passed, N failed, N skipped`. With CI=true a skip fails unless e2e/allowed-skips.json lists it with its reason.
 */

import { readAllowedSkips } from "./allowed-skips.ts";
import { failureLines } from "./failure-lines.ts";
import { addFailure, couldNotRun, emptyResult, type SuiteResult } from "./suite-result.ts";
import { suites, testPython } from "./suites.ts";
import { installSystemPackages } from "./system-packages.ts";

const flags = new Set(process.argv.slice(2).filter((flag) => flag.startsWith("--")));
const only = process.argv.slice(2).filter((word) => !word.startsWith("--"));
if (flags.has("--help")) {
  process.stdout.write(
    `npm test -- [--all] [--install-system] [suite …]\nsuites: ${suites.map((suite) => suite.name).join(", ")}\n`,
  );
  process.exit(0);
}

const started = Date.now();
const minutes = (): string => `${((Date.now() - started) / 60_000).toFixed(1)} min`;
await installSystemPackages({ asked: flags.has("--install-system"), say: (line) => process.stdout.write(`${line}\n`) });

const total: SuiteResult = emptyResult();
const chosen = suites.filter(({ name, all }) => (only.length > 0 ? only.includes(name) : !all || flags.has("--all")));
// Its packages are fetched while checks of the source compute. What goes wrong is told by the suites that need it.
if (chosen.some(({ needsPython }) => needsPython)) void testPython().catch(() => undefined);
for (const suite of chosen) {
  process.stdout.write(`\n== ${suite.name} (${minutes()})\n`);
  const result = await suite.run().catch((error: unknown) => couldNotRun(suite.name, error));
  total.passed += result.passed;
  total.failed += result.failed;
  total.skipped.push(...result.skipped);
  total.failures.push(...result.failures);
  process.stdout.write(
    `-- ${suite.name}: ${result.passed} passed, ${result.failed} failed, ${result.skipped.length} skipped\n`,
  );
}

const allowed = readAllowedSkips();
for (const skip of total.skipped) {
  const reason = allowed[skip.name];
  process.stdout.write(`skipped: ${skip.name}: ${skip.reason}${reason === undefined ? "" : ` (allowed: ${reason})`}\n`);
  if (process.env.CI === "true" && reason === undefined) {
    addFailure(total, `${skip.name}: skipped without a place in e2e/allowed-skips.json`);
  }
}
for (const line of failureLines(total.failures)) process.stdout.write(`${line}\n`);
process.stdout.write(
  `took ${minutes()}\n${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped\n`,
);
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);
