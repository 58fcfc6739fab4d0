/** Where the time of an attempt went: each stage's wait and work, and below it what its sandbox was busy with. Pure. */
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { TestReport } from "@rolldeck/contracts/test-report";
import { gradePhaseWords } from "./grade-phase-words.ts";

export interface TimingRow {
  readonly key: string;
  readonly label: string;
  readonly stage: Stage;
  readonly kind: "waited" | "worked" | "part";
  /** A part of a part stands further in. */
  readonly inner: boolean;
  /** Null while it goes on, or where nobody measured it. */
  readonly ms: number | null;
  /** Since when it goes on; null of what is over. */
  readonly since: string | null;
  /** The whole that it is a part of; null where it is the whole. */
  readonly ofMs: number | null;
}

/** What a turn took: the model's part and its calls'. */
export type TurnTimes = Pick<TurnView, "sampleMs"> & {
  readonly calls: readonly Pick<TurnView["calls"][number], "durationMs">[];
};

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
  turns: readonly TurnTimes[] = [],
): TimingRow[] {
  const ours = sandboxes.filter((sandbox) => sandbox.attempt === attempt);
  const rows: TimingRow[] = [];
  const part = (key: string, label: string, stage: Stage, ms: number, ofMs: number | null, inner = false) =>
    rows.push({ key, label, stage, kind: "part", inner, ms, since: null, ofMs });
  for (const span of spans.filter((each) => each.attempt === attempt)) {
    const { stage } = span;
    const worked = between(span.startedAt, span.endedAt);
    const [key, label] = [`${stage} waited`, `${stage}, waiting`];
    // One that ended before anybody began it waited to its end.
    const waited = between(span.queuedAt, span.startedAt ?? span.endedAt);
    const common = { stage, inner: false, ofMs: null };
    rows.push({ ...common, key, label, kind: "waited", ms: waited, since: waited === null ? span.queuedAt : null });
    if (span.startedAt !== null) {
      const since = worked === null ? span.startedAt : null;
      rows.push({ ...common, key: `${stage} worked`, label: stage, kind: "worked", ms: worked, since });
    }
    if (stage === "run" && turns.length > 0) {
      part("model", "model calls", stage, sum(turns.map(({ sampleMs }) => sampleMs)), worked);
      part(
        "tools",
        "tool calls",
        stage,
        sum(turns.flatMap(({ calls }) => calls.map((call) => call.durationMs))),
        worked,
      );
    }
    const ofGrader = stage === "evaluate" ? gradePhases(report, ours) : [];
    const putGrader = () => {
      for (const [place, { name, durationMs }] of ofGrader.splice(0).entries())
        part(`report ${place}`, gradePhaseWords(name), stage, durationMs, worked, true);
    };
    for (const sandbox of ours)
      for (const [phase, ms] of inOrder(sandbox.phases)) {
        if (stageOfPhase(sandbox.purpose, phase) !== stage) continue;
        const words = `${phaseLabels[phase] ?? phase}${sandbox.purpose === "grade" ? " (grading)" : ""}`;
        part(`${sandbox.sandboxId} ${phase}`, words, stage, ms, worked);
        if (phase === "verify") putGrader();
      }
    putGrader();
  }
  return rows;
}

const sum = (times: readonly (number | null)[]): number => times.reduce<number>((all, ms) => all + (ms ?? 0), 0);

/** Opening is the sandbox's own phase where that was measured. */
function gradePhases(report: TestReport | null, sandboxes: readonly SandboxInfo[]): TestReport["phases"] {
  const opened = sandboxes.some(({ purpose, phases }) => purpose === "grade" && phases.open !== undefined);
  return (report?.phases ?? []).filter(({ name }) => name !== "open" || !opened);
}
