"use client";
import type { Serving } from "@rolldeck/contracts/api/servings";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import Link from "next/link";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ConfirmDialog } from "../../design/confirm-dialog.tsx";
import { CopyText } from "../../design/copy-text.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatCount } from "../../format/numbers.ts";

export function ServedCheckpoints(): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const servings = useQuery(trpc.servings.list.queryOptions(undefined, { refetchInterval: 15_000 }));
  const stop = useMutation(
    trpc.servings.stop.mutationOptions({
      onSettled: () => client.invalidateQueries(trpc.servings.list.queryFilter()),
    }),
  );
  const [stopping, setStopping] = useState<Serving | null>(null);
  return (
    <section aria-label="Served checkpoints" className="flex flex-col gap-3">
      <h2 className="text-lg font-semibold">Served checkpoints</h2>
      <QueryError query={servings} doing="list the served checkpoints" />
      {stop.error && <ErrorBanner error={stop.error} doing="stop serving it" />}
      {servings.isPending && <Skeleton className="h-16" />}
      {servings.data?.length === 0 && (
        <p className="text-g7">None. A run's Checkpoints tab serves one as an OpenAI-compatible endpoint.</p>
      )}
      {servings.data && servings.data.length > 0 && (
        <Table label="Served checkpoints">
          <thead>
            <tr>
              <Th>Run</Th>
              <Th right title="Policy version, which is the number of the step that made it">
                Version
              </Th>
              <Th title="Copied with this server's address">Base URL</Th>
              <Th>By</Th>
              <Th right>Since</Th>
              <Th right title="To the minute">
                Last used
              </Th>
              <ActionsTh />
            </tr>
          </thead>
          <tbody>
            {servings.data.map((serving) => (
              <tr key={serving.servingId} className="hover:bg-g1">
                <Td>
                  <Link
                    href={`/runs/${serving.runId}?tab=checkpoints&version=${serving.version}`}
                    className="block max-w-[260px] truncate text-accent-text hover:underline"
                  >
                    {serving.runName}
                  </Link>
                </Td>
                <Td right>{formatCount(serving.version)}</Td>
                <Td>
                  <CopyText text={`${window.location.origin}${serving.path}`}>{serving.path}</CopyText>
                </Td>
                <Td className="text-sm">{serving.startedBy}</Td>
                <Td right>
                  <TimeAgo at={serving.startedAt} />
                </Td>
                <Td right>{serving.lastUsedAt ? <TimeAgo at={serving.lastUsedAt} /> : "never"}</Td>
                <Td right>
                  <Button
                    look="quiet"
                    small
                    className="font-sans"
                    disabled={stop.isPending}
                    onClick={() => setStopping(serving)}
                  >
                    Stop
                  </Button>
                </Td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      <ConfirmDialog
        open={stopping !== null}
        onOpenChange={() => setStopping(null)}
        title={`Stop serving version ${formatCount(stopping?.version)} of ${stopping?.runName ?? ""}?`}
        action="Stop serving"
        onConfirm={() => stopping && stop.mutate({ servingId: stopping.servingId })}
      >
        <p>
          Its key opens nothing from now on. The checkpoint stays as the run keeps it; serving it again makes a new key.
        </p>
      </ConfirmDialog>
    </section>
  );
}
