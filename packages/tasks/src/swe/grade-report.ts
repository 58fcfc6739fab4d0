/** The report and evidence of one grading. Invariant: the report fits where evidence is kept; what is left out is messages first. */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import { artifactNames, maxArtifactBytes } from "@rolldeck/contracts/api/artifacts";
import type { GradingSandboxes } from "@rolldeck/contracts/ports/task";
import { TestReport } from "@rolldeck/contracts/test-report";

const maxNameBytes = 2_000;

export async function keepReport(sandboxes: Pick<GradingSandboxes, "keep">, report: TestReport): Promise<void> {
  const content = fitted(TestReport.parse(report));
  await sandboxes.keep({ name: artifactNames.tests, mediaType: "application/json", content });
}

function fitted(report: TestReport): Uint8Array {
  const tests = report.tests.map((test) => ({ ...test, name: headWithin(test.name, maxNameBytes) }));
  const whole = encoded({ ...report, tests });
  if (whole.length <= maxArtifactBytes) return whole;
  const quiet = tests.map((test) => ({ ...test, message: headWithin(test.message ?? "", 100) || null }));
  for (let kept = quiet.length; ; kept = Math.floor(kept / 2)) {
    const part = encoded({ ...report, tests: quiet.slice(0, kept) });
    if (part.length <= maxArtifactBytes || kept === 0) return part;
  }
}

const encoded = (report: TestReport): Uint8Array => new TextEncoder().encode(JSON.stringify(report));

/** Of a longer log its beginning and its end. */
export async function keepLog(sandboxes: Pick<GradingSandboxes, "keep">, log: Uint8Array): Promise<void> {
  const evidence = { name: artifactNames.testOutput, mediaType: "text/plain" } as const;
  if (log.length <= maxArtifactBytes) return sandboxes.keep({ ...evidence, content: log });
  const note = new TextEncoder().encode(`\n[… ${log.length - maxArtifactBytes + 100} bytes left out …]\n`);
  const half = Math.floor((maxArtifactBytes - 100) / 2);
  const content = Buffer.concat([log.subarray(0, half), note, log.subarray(log.length - half)]);
  await sandboxes.keep({ ...evidence, content, wholeBytes: log.length });
}
