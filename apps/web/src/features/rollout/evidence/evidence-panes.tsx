"use client";
/** The panes beside the turns: what the agent changed, what the tests said, outputs, times, sandboxes. */
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { parseAsBoolean, parseAsString, parseAsStringLiteral, useQueryStates } from "nuqs";
import type { JSX } from "react";
import { ErrorBanner } from "../../../design/error-banner.tsx";
import { type TabItem, Tabs } from "../../../design/tabs.tsx";
import { formatCount } from "../../../format/numbers.ts";
import type { RolloutView } from "../use-rollout-view.ts";
import { NoEvidence, WithArtifact } from "./evidence-bar.tsx";
import { NoPatch } from "./no-patch.tsx";
import { OutputPane } from "./output-pane.tsx";
import { type Pane, paneLabels, panes } from "./panes.ts";
import { PatchView } from "./patch-view.tsx";
import { logNames, SandboxPane } from "./sandbox-pane.tsx";
import { TestResults } from "./test-results.tsx";
import { testShows } from "./test-rows.ts";
import { TimingView } from "./timing-view.tsx";
import type { Evidence } from "./use-evidence.ts";

/** Rollouts that act in no sandbox and left nothing have turns alone: no row of empty tabs for them. */
export const hasEvidence = ({ known, sandboxes }: Evidence): boolean =>
  sandboxes.length > 0 || Object.keys(known).length > 0;

export function PaneTabs({
  evidence,
  pane,
  onPane,
}: {
  evidence: Evidence;
  pane: Pane;
  onPane(pane: Pane): void;
}): JSX.Element {
  const live = evidence.sandboxes.filter(({ state }) => state === "open" || state === "kept").length;
  const items: TabItem<Pane>[] = panes.map((value) => ({
    value,
    label: paneLabels[value],
    ...(value === "sandboxes" && live > 0 ? { count: `${formatCount(live)} live` } : {}),
  }));
  return (
    <div className="shrink-0 overflow-x-auto border-b border-g3 px-3">
      <Tabs items={items} value={pane} onChange={onPane} label="Rollout" />
    </div>
  );
}

export function EvidencePane({
  pane,
  rollout,
  evidence,
  state,
  onPane,
}: {
  pane: Exclude<Pane, "turns">;
  rollout: RolloutDetail;
  evidence: Evidence;
  state: RolloutView;
  onPane(pane: Pane): void;
}): JSX.Element {
  const [view, setView] = useQueryStates(
    {
      file: parseAsString,
      tests: parseAsStringLiteral(testShows).withDefault("all"),
      output: parseAsString,
      log: parseAsStringLiteral(logNames).withDefault("agent"),
      trouble: parseAsBoolean.withDefault(false),
      shell: parseAsString,
    },
    { history: "replace" },
  );
  const place = { rolloutId: rollout.rolloutId, attempt: state.view.attempt ?? rollout.attempt };
  const live = rollout.state !== "settled";
  const { known } = evidence;
  return (
    <section
      id={`panel-${pane}`}
      role="tabpanel"
      aria-labelledby={`tab-${pane}`}
      className="flex min-h-0 min-w-0 flex-1 flex-col"
    >
      {evidence.error !== null && evidence.error !== undefined && (
        <div className="px-4 py-2">
          <ErrorBanner error={evidence.error} doing="load what the rollout left" onRetry={evidence.refresh} />
        </div>
      )}
      {pane === "patch" && (
        <WithArtifact
          place={place}
          info={known.patch}
          doing="load the patch"
          empty={<NoPatch known={known} place={place} live={live} />}
        >
          {(text, info) => (
            <PatchView
              text={text}
              info={info}
              place={place}
              file={view.file}
              onFile={(file) => void setView({ file })}
            />
          )}
        </WithArtifact>
      )}
      {pane === "tests" && (
        <WithArtifact
          place={place}
          info={known.tests}
          doing="load the test report"
          empty={
            <NoEvidence title="No test report" live={live}>
              No tests graded this attempt, or grading failed before they ran: the reason stands above.
            </NoEvidence>
          }
        >
          {(text, info) => (
            <TestResults
              text={text}
              info={info}
              place={place}
              samples={rollout.siblings}
              show={view.tests}
              onShow={(tests) => void setView({ tests })}
              onOutput={
                known.testOutput
                  ? () => {
                      onPane("output");
                      void setView({ output: "tests" });
                    }
                  : null
              }
            />
          )}
        </WithArtifact>
      )}
      {pane === "output" && (
        <OutputPane
          evidence={evidence}
          turns={state.turns}
          place={place}
          live={live}
          chosen={view.output}
          onChoose={(output) => void setView({ output })}
        />
      )}
      {pane === "timing" && <TimingView rollout={rollout} evidence={evidence} place={place} turns={state.turns} />}
      {pane === "sandboxes" && (
        <SandboxPane
          evidence={evidence}
          place={place}
          live={live}
          view={view}
          onView={(change) => void setView(change)}
        />
      )}
    </section>
  );
}
