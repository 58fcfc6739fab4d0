"use client";
import type { CheckpointInfo } from "@rolldeck/contracts/api/checkpoints";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { DoingDialog } from "../../design/doing-dialog.tsx";
import { formatCount } from "../../format/numbers.ts";

export function RestoreDialog({
  run,
  checkpoint: { version },
  onClose,
}: {
  run: RunDetail;
  checkpoint: CheckpointInfo;
  onClose(): void;
}): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const restore = useMutation(
    trpc.checkpoints.restore.mutationOptions({
      // Steps, points and rollouts are other ones now, whatever was asked of them.
      onSuccess: () => {
        void client.invalidateQueries();
        onClose();
      },
    }),
  );
  const later = run.step - version;
  return (
    <DoingDialog
      title={`Set ${run.name} back to version ${formatCount(version)}?`}
      action="Restore run"
      pending={restore.isPending}
      error={restore.error}
      doing="set this run back"
      onConfirm={() => restore.mutate({ runId: run.runId, version })}
      onClose={onClose}
    >
      <p>
        The run goes on with step {formatCount(version + 1)} from these weights.{" "}
        {later > 0
          ? `What it did after version ${formatCount(version)} is not lost: it becomes a run of its own, with its rollouts, points and checkpoints.`
          : "Nothing came after this version."}
      </p>
      {version >= run.steps && (
        <p className="mt-2">All {formatCount(run.steps)} steps are done with it: the run ends again at once.</p>
      )}
    </DoingDialog>
  );
}
