/** Where the time of an attempt went: each stage's wait and work, and below it what its sandbox was busy with. Pure. */
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { TestReport } from "@rolldeck/contracts/test-report";

export interface TimingRow {
  readonly key: string;
  readonly label: string;
  readonly stage: Stage;
  readonly kind: "waited" | "worked" | "part";
  /** Null while it goes on, or where nobody measured it. */
  readonly ms: number | null;
  /** The whole that it is a part of; null where it is the whole. */
  readonly ofMs: number | null;
}

const between = (from: string | null, to: string | null): number | null =>
  from && to ? Date.parse(to) - Date.parse(from) : null;

const phaseLabels: Readonly<Record<string, string>> = {
  open: "open the sandbox",
  setUp: "set it up",
  run: "commands of the agent",
  collect: "collect what it left",
  verify: "verify",
  close: "close the sandbox",
};
const stageOfPhase = (purpose: SandboxInfo["purpose"], phase: string): Stage =>
  purpose === "grade" || phase === "verify" ? "evaluate" : phase === "open" || phase === "setUp" ? "init" : "run";

/** As they come one after the other; what is not known comes last. */
function inOrder(phases: SandboxInfo["phases"]): [string, number][] {
  const known = Object.keys(phaseLabels);
  const place = (phase: string) => (known.includes(phase) ? known.indexOf(phase) : known.length);
  return Object.entries(phases).sort(([a], [b]) => place(a) - place(b));
}

export function timingRows(
  { attempt, spans }: Pick<RolloutDetail, "attempt" | "spans">,
  sandboxes: readonly SandboxInfo[],
  report: TestReport | null,
): TimingRow[] {
  const ours = sandboxes.filter((sandbox) => sandbox.attempt === attempt);
  const rows: TimingRow[] = [];
  for (const span of spans.filter((each) => each.attempt === attempt)) {
    const { stage } = span;
    const worked = between(span.startedAt, span.endedAt);
    rows.push({
      ...{ key: `${stage} waited`, label: `${stage}, waiting`, stage, kind: "waited" },
      // One that ended before anybody began it waited to its end.
      ms: between(span.queuedAt, span.startedAt ?? span.endedAt),
      ofMs: null,
    });
    if (span.startedAt !== null)
      rows.push({ key: `${stage} worked`, label: stage, stage, kind: "worked", ms: worked, ofMs: null });
    for (const sandbox of ours)
      for (const [phase, ms] of inOrder(sandbox.phases))
        if (stageOfPhase(sandbox.purpose, phase) === stage)
          rows.push({
            key: `${sandbox.sandboxId} ${phase}`,
            label: `${phaseLabels[phase] ?? phase}${sandbox.purpose === "grade" ? " (grading)" : ""}`,
            ...{ stage, kind: "part", ms, ofMs: worked },
          });
    if (stage === "evaluate")
      for (const [place, { name, durationMs }] of (report?.phases ?? []).entries())
        rows.push({
          ...{ key: `report ${place}`, label: name, stage, kind: "part", ms: durationMs, ofMs: worked },
        });
  }
  return rows;
}
