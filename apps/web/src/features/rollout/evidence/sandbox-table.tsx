"use client";
import { heldReason, isThere, type SandboxInfo, type SandboxState } from "@rolldeck/contracts/api/sandboxes";
import Link from "next/link";
import type { JSX } from "react";
import { Button } from "../../../design/button.tsx";
import { CopyText } from "../../../design/copy-text.tsx";
import { join } from "../../../design/join.ts";
import { Mark, type MarkShape } from "../../../design/mark.tsx";
import { Table, Td, Th } from "../../../design/table.tsx";
import { TimeAgo, useNow } from "../../../design/time-ago.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { shortenId } from "../../../format/numbers.ts";
import { formatDuration, formatUtc } from "../../../format/times.ts";

const looks: Readonly<Record<SandboxState, { readonly mark: MarkShape; readonly tone: string }>> = {
  opening: { mark: "ring", tone: "text-g7" },
  open: { mark: "half", tone: "text-running" },
  kept: { mark: "bars", tone: "text-paused" },
  closed: { mark: "disc", tone: "text-g7" },
  lost: { mark: "triangle", tone: "text-failed" },
};

/** Sandboxes, one a line, with what can be done with each. */
export function SandboxTable({
  sandboxes,
  chosen,
  busy,
  withRollout = false,
  onShell,
  onKeep,
  onLetGo,
}: {
  sandboxes: readonly SandboxInfo[];
  /** Whose shell is open. */
  chosen: string | null;
  busy: boolean;
  /** Of several rollouts: which one is named. */
  withRollout?: boolean;
  onShell(sandbox: SandboxInfo): void;
  onKeep(sandbox: SandboxInfo): void;
  onLetGo(sandbox: SandboxInfo): void;
}): JSX.Element {
  return (
    <Table label="Sandboxes">
      <thead>
        <tr>
          <Th>State</Th>
          <Th>Sandbox</Th>
          {withRollout && <Th>Rollout</Th>}
          <Th>Actions</Th>
          <Th>For</Th>
          {/* Long names take what room is left, so that nothing is pushed out of sight. */}
          <Th className="w-1/2 min-w-[120px]">Runtime and image</Th>
          <Th>Network</Th>
          <Th right>Opened</Th>
          <Th right>Lived</Th>
        </tr>
      </thead>
      <tbody>
        {sandboxes.map((sandbox) => (
          <tr
            key={sandbox.sandboxId}
            className={join(sandbox.sandboxId === chosen ? "bg-accent-soft" : "hover:bg-g1")}
            data-sandbox={sandbox.sandboxId}
          >
            <Td className="text-sm">
              <State sandbox={sandbox} />
            </Td>
            <Td className="whitespace-nowrap">
              <CopyText text={sandbox.sandboxId}>{`…${sandbox.sandboxId.slice(-8)}`}</CopyText>
            </Td>
            {withRollout && (
              <Td className="max-w-[190px] truncate text-sm">
                <Link
                  href={`/runs/${sandbox.runId}/t/${sandbox.rolloutId}?pane=sandboxes`}
                  title={`${sandbox.instanceId}, sample ${sandbox.sample + 1}`}
                  className="text-accent-text hover:underline"
                >
                  <span className="mono">{shortenId(sandbox.instanceId, 8)}</span> · {sandbox.sample + 1}
                </Link>
              </Td>
            )}
            <Td className="py-0.5">
              <span className="flex gap-1">
                {isThere(sandbox) && (
                  <>
                    <Button small onClick={() => onShell(sandbox)}>
                      Open shell
                    </Button>
                    <Button
                      small
                      disabled={busy}
                      title="Kept for 30 min from now, after its rollout is done with it"
                      onClick={() => onKeep(sandbox)}
                    >
                      Keep 30 min
                    </Button>
                  </>
                )}
                {sandbox.state === "kept" && (
                  <Button small disabled={busy} onClick={() => onLetGo(sandbox)}>
                    Close now
                  </Button>
                )}
              </span>
            </Td>
            <Td className="text-sm whitespace-nowrap">
              {sandbox.purpose === "agent" ? "the agent" : "grading"}
              {sandbox.inPlace && <span className="text-g7"> and grading</span>}
              {sandbox.uses !== null && (
                <span className="text-g7" title="An environment that the run keeps and resets for each next rollout">
                  {`, rollout ${sandbox.uses} in it`}
                </span>
              )}
              {sandbox.attempt > 1 && <span className="text-g7">, attempt {sandbox.attempt}</span>}
            </Td>
            <Td className="mono max-w-0 min-w-[120px] truncate text-sm">
              <span title={`${sandbox.runtime}: ${sandbox.image ?? "no image"}`}>
                <span className="text-g7">{sandbox.runtime}</span> {visibleText(sandbox.image ?? "without an image")}
              </span>
            </Td>
            <Td className="max-w-[110px] truncate text-sm">
              <span title={sandbox.network}>{visibleText(sandbox.network)}</span>
            </Td>
            <Td right>
              <TimeAgo at={sandbox.openedAt} />
            </Td>
            <Td right>
              <Lived sandbox={sandbox} />
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function State({ sandbox: { state, reason, keepUntil, idleSince } }: { sandbox: SandboxInfo }): JSX.Element {
  const now = useNow();
  const left = keepUntil === null ? null : Date.parse(keepUntil) - now;
  const { mark, tone } = looks[state];
  // Its limit is there in case nobody ever grades it: no time that anybody chose.
  const held = state === "kept" && reason === heldReason;
  const kept =
    held || left === null || (state !== "kept" && state !== "open")
      ? null
      : left > 0
        ? `${state === "open" ? "then kept, " : ""}${formatDuration(Math.ceil(left / 60_000) * 60_000)} left`
        : state === "kept"
          ? "closing"
          : null;
  const more = kept ?? (held ? "until it is graded" : reason);
  return (
    <span
      className="flex max-w-[200px] items-center gap-1.5"
      title={kept ? formatUtc(keepUntil) : (reason ?? undefined)}
    >
      <span className={join("inline-flex", tone)}>
        <Mark shape={mark} size={11} />
      </span>
      <span className={state === "lost" ? "text-failed" : undefined}>
        {held ? "held" : state !== "open" ? state : idleSince === null ? "in use" : "idle"}
      </span>
      {more && <span className="truncate text-g7">{visibleText(more)}</span>}
    </span>
  );
}

function Lived({ sandbox: { openedAt, closedAt } }: { sandbox: SandboxInfo }): JSX.Element {
  const now = useNow();
  const end = closedAt ? Date.parse(closedAt) : now;
  return <>{formatDuration(openedAt && end ? Math.max(0, end - Date.parse(openedAt)) : null)}</>;
}
