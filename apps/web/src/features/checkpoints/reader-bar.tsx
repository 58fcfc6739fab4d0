"use client";
/** Through which worker of the fleet a run's checkpoints are read: to ask for one, to see it come, to give it back. */
import type { FleetReading, RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { CodeText } from "../../design/code-text.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Mark } from "../../design/mark.tsx";

export function ReaderBar({ runId, fleet }: { runId: string; fleet: FleetReading }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const done = {
    onSuccess: (found: RunCheckpoints) => client.setQueryData(trpc.checkpoints.ofRun.queryKey({ runId }), found),
    onSettled: () => client.invalidateQueries(trpc.fleet.ofRun.queryFilter({ runId })),
  };
  const wake = useMutation(trpc.checkpoints.wakeReader.mutationOptions(done));
  const release = useMutation(trpc.checkpoints.releaseReader.mutationOptions(done));
  const busy = wake.isPending || release.isPending;
  const { state, message, remedy, wakeRefusal, canRelease } = fleet;
  return (
    <section aria-label="Worker that reads the checkpoints" className="mb-2 text-sm">
      {wake.error && <ErrorBanner error={wake.error} doing="ask for a reader" />}
      {release.error && <ErrorBanner error={release.error} doing="give the reader back" />}
      <div className="flex flex-wrap items-center gap-2">
        <Mark shape={shapes[state]} size={9} turning={state === "coming"} />
        <p role="status" className="max-w-[80ch] text-g8">
          <CodeText text={message} />
          {remedy !== null && (
            <span className="text-g7">
              {" "}
              <CodeText text={remedy} />.
            </span>
          )}
          {state === "asleep" && wakeRefusal !== null && <span> {wakeRefusal}</span>}
        </p>
        {state === "asleep" && wakeRefusal === null && (
          <Button small disabled={busy} onClick={() => wake.mutate({ runId })}>
            Wake a reader
          </Button>
        )}
        {canRelease && (
          <Button look="quiet" small disabled={busy} onClick={() => release.mutate({ runId })}>
            {state === "coming" ? "Don't wait for it" : "Give the reader back"}
          </Button>
        )}
      </div>
    </section>
  );
}

const shapes = { asleep: "ring", coming: "half", ready: "disc" } as const;
