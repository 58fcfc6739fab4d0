"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { SimulatedSetting } from "@rolldeck/contracts/api/simulations";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { formatCount } from "../../format/numbers.ts";

const stages = ["init", "run", "evaluate"] as const;

/** Bounds of a running run are changed to a simulated setting's. */
export function ApplyDialog({
  run,
  from,
  to,
  onClose,
}: {
  run: RunDetail;
  from: SimulatedSetting;
  to: SimulatedSetting;
  onClose(): void;
}): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const change = useMutation(
    trpc.dispatch.change.mutationOptions({
      onSuccess: async () => {
        await client.invalidateQueries(trpc.runs.get.queryFilter({ runId: run.runId }));
        await client.invalidateQueries(trpc.schedule.pathFilter());
        onClose();
      },
    }),
  );
  const changed = stages.filter((stage) => from.bounds[stage] !== to.bounds[stage]);
  const lower = changed.some((stage) => to.bounds[stage] < from.bounds[stage]);
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Change the bounds of ${run.name}?`}
      description={
        <div className="flex flex-col gap-2">
          <ul className="num">
            {changed.map((stage) => (
              <li key={stage}>
                bounds.{stage}: {formatCount(from.bounds[stage])} → {formatCount(to.bounds[stage])}
              </li>
            ))}
          </ul>
          <p>
            It holds from the planner's next round on and is in the run's log; the config stays as it was launched.
            {lower &&
              " A bound that shrinks stops nothing: what runs comes to its end, and nothing new is admitted above it."}{" "}
            Sandboxes and partial work stay as they are.
          </p>
        </div>
      }
    >
      {change.error && <ErrorBanner error={change.error} doing="change the bounds" />}
      <div className="mt-2 flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          disabled={change.isPending}
          onClick={() => change.mutate({ runId: run.runId, bounds: to.bounds })}
        >
          Change bounds
        </Button>
      </div>
    </Dialog>
  );
}
