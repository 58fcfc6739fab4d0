/** Vitest's JSON report as a suite's result. */
import path from "node:path";
import { z } from "zod";
import { addFailure, emptyResult, type SuiteResult } from "./suite-result.ts";

const VitestReport = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().optional(),
      startTime: z.number(),
      endTime: z.number(),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          status: z.string(),
          failureMessages: z.array(z.string()).nullish(),
        }),
      ),
    }),
  ),
});
export type VitestReport = z.infer<typeof VitestReport>;

export const parseVitestReport = (text: string): VitestReport => VitestReport.parse(JSON.parse(text));

/** Without the places in Vitest and Node that every failure passes through. */
const ownLines = (messages: readonly string[]): string =>
  messages
    .flatMap((message) => message.split("\n"))
    .filter((line) => !/^\s+at .*(\/node_modules\/|node:internal|<anonymous>)/.test(line))
    .join("\n");

/** @param root the folder that files are named from */
export function resultOf(report: VitestReport, root: string): SuiteResult {
  const result = emptyResult();
  for (const file of report.testResults) {
    const where = path.relative(root, file.name);
    // A file whose tests all passed fails by itself: it could not be loaded, or a hook after its tests threw.
    if (file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"))
      addFailure(result, `${where}: could not run`, file.message);
    for (const test of file.assertionResults) {
      const name = `${where}: ${test.fullName}`;
      if (test.status === "passed") result.passed += 1;
      else if (test.status === "failed") addFailure(result, name, ownLines(test.failureMessages ?? []));
      else result.skipped.push({ name, reason: test.status });
    }
  }
  return result;
}

/** Where a suite's time goes: its slowest files, each with its seconds. */
export function slowestFiles(report: VitestReport, root: string, most: number): string {
  return report.testResults
    .map(({ name, startTime, endTime }) => ({
      where: path.relative(root, name),
      seconds: (endTime - startTime) / 1_000,
    }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, most)
    .map(({ where, seconds }) => `${where} ${seconds.toFixed(0)} s`)
    .join(", ");
}
