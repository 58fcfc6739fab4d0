/** Tests by name out of a CTRF report (`/logs/verifier/ctrf.json`), where a verifier leaves one: shown, never part of the reward. */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import type { TestReport, TestStatus } from "@rolldeck/contracts/test-report";
import { z } from "zod";

const Report = z.object({
  results: z.object({
    tests: z.array(
      z.object({ name: z.string(), status: z.string(), message: z.string().nullish(), trace: z.string().nullish() }),
    ),
  }),
});
const statuses: Readonly<Record<string, TestStatus>> = {
  passed: "passed",
  failed: "failed",
  skipped: "skipped",
  pending: "skipped",
};
const maxTests = 20_000;

/** Failing first; empty for what is no such report. */
export function testList(bytes: Uint8Array): TestReport["tests"] {
  let parsed: z.output<typeof Report>;
  try {
    parsed = Report.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // A report for people that can't be read is no trouble of grading.
    return [];
  }
  const tests = parsed.results.tests.map(({ name, status, message, trace }) => ({
    name,
    status: statuses[status] ?? "error",
    wanted: null,
    ok: null,
    message: headOf(message ?? trace ?? null),
  }));
  const rank = (status: TestStatus): number => (status === "failed" || status === "error" ? 0 : 1);
  return tests.sort((a, b) => rank(a.status) - rank(b.status)).slice(0, maxTests);
}

const headOf = (text: string | null): string | null => (text === null ? null : headWithin(text, 2000));
