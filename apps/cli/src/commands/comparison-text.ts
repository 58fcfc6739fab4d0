/** A comparison as text: runs by shared metrics, what backends say of themselves, and where definitions differ. */
import type { ComparisonDetail } from "@rolldeck/contracts/api/comparisons";
import { plain, table } from "./output.ts";

export function comparisonText({ comparisonId, name, variants, compared, native, notes }: ComparisonDetail): string {
  const runs = variants.map(({ label, runId }) => ({
    label: plain(label),
    run: compared.runs.find((run) => run.runId === runId),
    runId,
  }));
  const states = table(
    ["variant", "run", "backend", "status", "step"],
    runs.map(({ label, runId, run }) => [
      label,
      runId,
      run?.backend ?? null,
      run?.status ?? null,
      run ? `${run.step}/${run.steps}` : null,
    ]),
  );
  const shared = table(
    ["last value", ...runs.map(({ label }) => label)],
    compared.metrics.map(({ name: metric, verdict }) => [
      metric,
      ...runs.map(({ runId }) => verdict.find((each) => each.runId === runId)?.final ?? null),
    ]),
  );
  const own = native.flatMap(({ runId, backend, values }) =>
    values.map((each) => [runs.find((run) => run.runId === runId)?.label ?? runId, backend, each.name, each.value]),
  );
  const blocks = [`${plain(name)} (${comparisonId})`, states, shared];
  if (own.length > 0) blocks.push(table(["variant", "backend", "its own name", "last value"], own));
  return [...blocks, ...notes.map(({ text }) => `○ ${text}`)].join("\n\n");
}
