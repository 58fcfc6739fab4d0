"use client";
/** The rollout's sandboxes, what was done in them, and a shell in one that is there. */
import { isThere } from "@rolldeck/contracts/api/sandboxes";
import { useMutation } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../../api/query-provider.tsx";
import { ErrorBanner } from "../../../design/error-banner.tsx";
import { Segmented } from "../../../design/segmented.tsx";
import { useKeys } from "../../shell/keys.ts";
import { ShellPanel } from "../shell/shell-panel.tsx";
import { NoEvidence, WithArtifact } from "./evidence-bar.tsx";
import { SandboxLogView } from "./sandbox-log-view.tsx";
import { SandboxTable } from "./sandbox-table.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";
import type { Evidence } from "./use-evidence.ts";

export const logNames = ["agent", "grade"] as const;
type LogName = (typeof logNames)[number];
const logs = { agent: "agentLog", grade: "gradeLog" } as const;
const keepMinutes = 30;

export function SandboxPane({
  evidence,
  place,
  live,
  view,
  onView,
}: {
  evidence: Evidence;
  place: ArtifactPlace;
  live: boolean;
  view: { readonly log: LogName; readonly trouble: boolean; readonly shell: string | null };
  onView(change: { log?: LogName; trouble?: boolean; shell?: string | null }): void;
}): JSX.Element {
  const trpc = useTRPC();
  const done = { onSettled: () => evidence.refresh() };
  const keep = useMutation(trpc.sandboxes.keep.mutationOptions(done));
  const close = useMutation(trpc.sandboxes.close.mutationOptions(done));
  const { sandboxes, known } = evidence;
  const shell = sandboxes.find(({ sandboxId }) => sandboxId === view.shell);
  const first = sandboxes.find(isThere);
  useKeys("Sandboxes", [
    { keys: "s", label: "Open a shell", run: () => first && onView({ shell: first.sandboxId }) },
    { keys: "x", label: "Trouble only", run: () => onView({ trouble: !view.trouble }) },
  ]);
  if (sandboxes.length === 0 && !known.agentLog && !known.gradeLog)
    return (
      <NoEvidence title="No sandbox" live={live}>
        This rollout's tools act in none.
      </NoEvidence>
    );
  const log = known[logs[view.log]] ? view.log : known.agentLog ? "agent" : "grade";
  const error = keep.error ?? close.error;
  return (
    <>
      <div className="max-h-[34vh] shrink-0 overflow-auto border-b border-g3 px-2">
        <SandboxTable
          sandboxes={sandboxes}
          chosen={shell?.sandboxId ?? null}
          busy={keep.isPending || close.isPending}
          onShell={({ sandboxId }) => onView({ shell: sandboxId })}
          onKeep={({ sandboxId }) => keep.mutate({ sandboxId, minutes: keepMinutes })}
          onLetGo={({ sandboxId }) => close.mutate({ sandboxId })}
        />
        {evidence.moreSandboxes && <p className="px-2 py-1 text-sm text-g7">Only the newest 100 are listed.</p>}
      </div>
      {error && (
        <div className="px-4 py-2">
          <ErrorBanner error={error} doing={keep.error ? "keep the sandbox" : "close the sandbox"} />
        </div>
      )}
      {shell && <ShellPanel key={shell.sandboxId} sandbox={shell} onClose={() => onView({ shell: null })} />}
      {!shell && (
        <WithArtifact
          place={place}
          info={known[logs[log]]}
          doing="load the log of the sandbox"
          empty={
            <NoEvidence title="No log" live={live}>
              Nothing was kept of what was done in its sandboxes.
            </NoEvidence>
          }
        >
          {(text, info) => (
            <SandboxLogView
              text={text}
              info={info}
              place={place}
              onlyTrouble={view.trouble}
              onOnlyTrouble={(trouble) => onView({ trouble })}
              choice={
                known.agentLog && known.gradeLog ? (
                  <Segmented
                    label="Log of"
                    options={[
                      { value: "agent", label: "The agent's" },
                      { value: "grade", label: "Grading" },
                    ]}
                    value={log}
                    onChange={(value) => onView({ log: value })}
                  />
                ) : (
                  <span className="text-sm text-g7">{log === "agent" ? "The agent's sandbox" : "Grading"}</span>
                )
              }
            />
          )}
        </WithArtifact>
      )}
    </>
  );
}
