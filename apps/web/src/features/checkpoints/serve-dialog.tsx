"use client";
import type { CheckpointInfo } from "@rolldeck/contracts/api/checkpoints";
import type { StartedServing } from "@rolldeck/contracts/api/servings";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import Link from "next/link";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { CodeBlock } from "../../design/copy-text.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { DoingDialog } from "../../design/doing-dialog.tsx";
import { formatCount } from "../../format/numbers.ts";

export function ServeDialog({
  checkpoint: { id, version },
  onClose,
}: {
  checkpoint: CheckpointInfo;
  onClose(): void;
}): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const start = useMutation(
    trpc.servings.start.mutationOptions({
      onSuccess: () => {
        void client.invalidateQueries(trpc.checkpoints.ofRun.pathFilter());
        void client.invalidateQueries(trpc.servings.list.queryFilter());
      },
    }),
  );
  if (start.data) return <Started serving={start.data} onClose={onClose} />;
  return (
    <DoingDialog
      title={`Serve version ${formatCount(version)}?`}
      action="Serve it"
      pending={start.isPending}
      error={start.error}
      doing="serve the checkpoint"
      onConfirm={() => start.mutate({ id })}
      onClose={onClose}
    >
      <p>
        It answers as an OpenAI-compatible server, with token ids and logprobs, for whoever has its key. It shares the
        GPU worker with the runs, and stays among the checkpoints as long as it is served.
      </p>
    </DoingDialog>
  );
}

function Started({ serving, onClose }: { serving: StartedServing; onClose(): void }): JSX.Element {
  const base = `${window.location.origin}${serving.path}`;
  const command = `curl ${base}/chat/completions -H "Authorization: Bearer ${serving.key}" -H "Content-Type: application/json" -d '{"messages":[{"role":"user","content":"hello"}],"logprobs":true,"return_token_ids":true}'`;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Version ${formatCount(serving.version)} is served`}
      width={640}
    >
      <div className="flex flex-col gap-2">
        <p className="text-sm font-medium">Copy the key now: it is not shown again.</p>
        <CodeBlock label="Base URL" text={base} />
        <CodeBlock label="Key" text={serving.key} />
        <CodeBlock label="Example" text={command} />
        <p className="text-sm text-g7">
          It is listed, and stopped, under{" "}
          <Link href="/settings" className="text-accent-text hover:underline">
            Settings
          </Link>
          .
        </p>
        <div className="flex justify-end">
          <Button onClick={onClose}>Done</Button>
        </div>
      </div>
    </Dialog>
  );
}
