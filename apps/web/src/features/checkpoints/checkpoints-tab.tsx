"use client";
/** A run's checkpoints, why each stays, and what can be made of one; the runs it comes from and those that came from it. */
import type { CheckpointInfo, RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { parseAsInteger, useQueryState } from "nuqs";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { MarkedText } from "../../design/marked-text.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount } from "../../format/numbers.ts";
import { unlessFrozen } from "../run/unless-frozen.ts";
import { useKeys } from "../shell/keys.ts";
import { CheckpointTable } from "./checkpoint-table.tsx";
import { ruleWords } from "./keep-words.ts";
import { Lineage } from "./lineage.tsx";
import { ReaderBar } from "./reader-bar.tsx";
import { RestoreDialog } from "./restore-dialog.tsx";
import { ServeDialog } from "./serve-dialog.tsx";

const refreshMs = 15_000;
/** While a reader is on its way. */
const comingMs = 2_000;

export function CheckpointsTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const query = useQuery(
    trpc.checkpoints.ofRun.queryOptions(
      { runId: run.runId },
      {
        enabled: unlessFrozen(frozen),
        refetchInterval: ({ state }) => (state.data?.fleet?.state === "coming" ? comingMs : refreshMs),
      },
    ),
  );
  const found = query.data;
  return (
    <div className="min-h-0 max-w-[1240px] flex-1 overflow-auto p-4">
      <QueryError query={query} doing="load the checkpoints" />
      {found && <Lineage found={found} run={run} />}
      {!found ? (
        query.isPending && <Skeleton className="h-48" />
      ) : found.checkpoints.length === 0 ? (
        <NoCheckpoint run={run} />
      ) : (
        <Found run={run} found={found} />
      )}
    </div>
  );
}

function Found({ run, found }: { run: RunDetail; found: RunCheckpoints }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const router = useRouter();
  const [chosen, setChosen] = useQueryState("version", parseAsInteger);
  const [restoring, setRestoring] = useState<CheckpointInfo | null>(null);
  const [serving, setServing] = useState<CheckpointInfo | null>(null);
  const pin = useMutation(
    trpc.checkpoints.pin.mutationOptions({
      onSettled: () => client.invalidateQueries(trpc.checkpoints.ofRun.queryFilter({ runId: run.runId })),
    }),
  );
  const { checkpoints } = found;
  const at = checkpoints.find(({ version }) => version === chosen) ?? null;
  const onRow = (act: (checkpoint: CheckpointInfo) => void) => () => {
    if (at !== null) act(at);
  };
  const move = (by: number) => {
    const from = at === null ? (by > 0 ? -1 : checkpoints.length) : checkpoints.indexOf(at);
    const next = checkpoints[Math.min(checkpoints.length - 1, Math.max(0, from + by))];
    if (next !== undefined) void setChosen(next.version);
  };
  const fork = ({ version }: CheckpointInfo) => router.push(`/runs/new?from=${run.runId}&version=${version}`);
  const togglePin = ({ id, pinned }: CheckpointInfo) => pin.mutate({ id, pinned: !pinned });
  useKeys("Checkpoints", [
    { keys: "j", label: "Older checkpoint", run: () => move(1) },
    { keys: "k", label: "Newer checkpoint", run: () => move(-1) },
    { keys: "f", label: "Fork from the chosen one", run: onRow(fork) },
    { keys: "p", label: "Pin or unpin the chosen one", run: onRow(togglePin) },
    {
      keys: "r",
      label: "Restore the run to the chosen one",
      run: onRow((checkpoint) => found.restoreRefusal === null && setRestoring(checkpoint)),
    },
    {
      keys: "v",
      label: "Serve the chosen one",
      run: onRow((checkpoint) => found.exportRefusal === null && setServing(checkpoint)),
    },
  ]);
  return (
    <>
      <div className="mb-2 text-sm text-g7">
        <p>{ruleWords(found.rule)}</p>
        {found.restoreRefusal !== null && <p>Restoring: {found.restoreRefusal}</p>}
        {found.exportRefusal !== null && found.fleet === null && <p>Export and serving: {found.exportRefusal}</p>}
        {chosen !== null && at === null && (
          <p role="status" className="text-paused">
            <MarkedText shape="bars">
              Version {formatCount(chosen)} is not among the checkpoints of this run, or not any more.
            </MarkedText>
          </p>
        )}
      </div>
      {found.fleet !== null && <ReaderBar runId={run.runId} fleet={found.fleet} />}
      {pin.error && <ErrorBanner error={pin.error} doing="change the pin" />}
      <CheckpointTable
        found={found}
        chosen={chosen}
        busy={pin.isPending}
        onChoose={(version) => void setChosen(version)}
        onPin={togglePin}
        onRestore={setRestoring}
        onServe={setServing}
      />
      {restoring && <RestoreDialog run={run} checkpoint={restoring} onClose={() => setRestoring(null)} />}
      {serving && <ServeDialog checkpoint={serving} onClose={() => setServing(null)} />}
    </>
  );
}

function NoCheckpoint({ run }: { run: RunDetail }): JSX.Element {
  const { every, keep } = run.config.checkpoints;
  if (run.kind === "evaluate")
    return (
      <EmptyState title="No checkpoint">
        <p>An evaluation trains nothing, so it saves none.</p>
      </EmptyState>
    );
  const cadence = every === 1 ? "every step" : `every ${formatCount(every)} steps`;
  if (endedRunStatuses.includes(run.status))
    return (
      <EmptyState title="No checkpoint">
        <p>
          This run was to save one {cadence} and ended after {formatCount(run.step)} {run.step === 1 ? "step" : "steps"}
          : there are no weights to go on from.
        </p>
      </EmptyState>
    );
  return (
    <EmptyState title="No checkpoint yet">
      <p>
        This run saves one {cadence} and keeps the newest {formatCount(keep)}; the first comes with step{" "}
        {formatCount(Math.min(every, run.steps))}.
      </p>
    </EmptyState>
  );
}
