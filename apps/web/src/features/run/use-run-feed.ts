"use client";
/**
 * Keeps a run's page true to its event log: events patch what they fully describe (matrix cells, boot progress) and
 * invalidate what they only hint at (metrics, detail). Bursts are applied together, a few times a second. While frozen,
 * events wait; unfreezing applies all of them.
 */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { RunEvent } from "@rolldeck/contracts/events";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { useRunEvents } from "../../live/live-provider.tsx";
import { useThrottled } from "../../live/throttle.ts";
import { patchMatrix } from "./patch-matrix.ts";

const applyMs = 250;
const refetchMs = 1_000;
const keptEvents = 5_000;
const detailTypes = new Set([
  "run-status",
  "step-created",
  "step-status",
  "version-serving",
  "checkpoint-saved",
  "checkpoint-removed",
  "checkpoint-lost",
  "checkpoint-pinned",
  "checkpoint-served",
  "run-restored",
  "model-adopted",
  "metrics-written",
  "run-limit-changed",
  "dispatcher-changed",
  "drain-changed",
]);
/** What changes what is kept, why, or what may be done with it. */
const checkpointTypes = new Set([
  "checkpoint-saved",
  "checkpoint-removed",
  "checkpoint-lost",
  "checkpoint-pinned",
  "checkpoint-served",
  "run-restored",
  "run-status",
]);
/** What changes which groups a step has, or what they are. */
const matrixTypes = new Set([
  "step-created",
  "step-status",
  "groups-added",
  "groups-moved",
  "group-set-aside",
  "hold-changed",
]);

export interface RunFeed {
  /** Events that came while the page is open, oldest first, at most 5,000. */
  readonly events: readonly RunEvent[];
}

export function useRunFeed(runId: string, head: number | null, frozen: boolean): RunFeed {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [events, setEvents] = useState<readonly RunEvent[]>([]);
  const waiting = useRef<RunEvent[]>([]);

  const refetchDetail = useThrottled(() => void client.invalidateQueries(trpc.runs.get.queryFilter({ runId })), 500);
  const refetchCheckpoints = useThrottled(
    () => void client.invalidateQueries(trpc.checkpoints.ofRun.queryFilter({ runId })),
    refetchMs,
  );
  const refetchWorkers = useThrottled(() => {
    void client.invalidateQueries(trpc.fleet.ofRun.queryFilter({ runId }));
    void client.invalidateQueries(trpc.checkpoints.ofRun.queryFilter({ runId }));
  }, refetchMs);
  const refetchMetrics = useThrottled(() => void client.invalidateQueries(trpc.runs.metrics.pathFilter()), refetchMs);
  const refetchMatrix = useThrottled(() => void client.invalidateQueries(trpc.runs.matrix.pathFilter()), refetchMs);

  const apply = useThrottled(() => {
    const batch = waiting.current;
    if (frozen || batch.length === 0) return;
    waiting.current = [];
    setEvents((known) => [...known, ...batch].slice(-keptEvents));
    client.setQueriesData(trpc.runs.matrix.pathFilter(), (matrix: Parameters<typeof patchMatrix>[0] | undefined) =>
      matrix?.runId === runId ? patchMatrix(matrix, batch) : matrix,
    );
    const boot = batch.findLast((event) => event.body.type === "boot-progress")?.body;
    if (boot?.type === "boot-progress")
      client.setQueryData(trpc.runs.get.queryKey({ runId }), (run: RunDetail | undefined) =>
        run ? { ...run, boot } : run,
      );
    if (batch.some((event) => detailTypes.has(event.body.type))) refetchDetail();
    if (batch.some((event) => checkpointTypes.has(event.body.type))) refetchCheckpoints();
    if (batch.some((event) => event.body.type === "metrics-written")) refetchMetrics();
    // Notes tell of the run's GPU workers, and so of who can read its checkpoints.
    if (batch.some((event) => event.body.type === "note")) refetchWorkers();
    if (batch.some((event) => matrixTypes.has(event.body.type))) refetchMatrix();
  }, applyMs);

  useRunEvents(
    runId,
    head,
    useCallback(
      (fresh: readonly RunEvent[]) => {
        waiting.current.push(...fresh);
        apply();
      },
      [apply],
    ),
  );
  useEffect(() => {
    if (!frozen) apply();
  }, [frozen, apply]);
  return { events };
}
