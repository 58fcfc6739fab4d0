"use client";
import { isThere, type SandboxInfo, type SandboxState } from "@rolldeck/contracts/api/sandboxes";
import Link from "next/link";
import type { ButtonHTMLAttributes, JSX } from "react";
import { CopyText } from "../../../design/copy-text.tsx";
import { join } from "../../../design/join.ts";
import { Table, Td, Th } from "../../../design/table.tsx";
import { TimeAgo, useNow } from "../../../design/time-ago.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { formatDuration, formatUtc } from "../../../format/times.ts";

const looks: Readonly<Record<SandboxState, { readonly mark: string; readonly tone: string }>> = {
  opening: { mark: "○", tone: "text-g7" },
  open: { mark: "◐", tone: "text-running" },
  kept: { mark: "‖", tone: "text-paused" },
  closed: { mark: "●", tone: "text-g7" },
  lost: { mark: "▲", tone: "text-failed" },
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
          <Th right>Attempt</Th>
          <Th>Runtime</Th>
          <Th>Image</Th>
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
              <Td className="mono text-sm whitespace-nowrap">
                <Link
                  href={`/runs/${sandbox.runId}/t/${sandbox.rolloutId}?pane=sandboxes`}
                  className="text-accent-text hover:underline"
                >
                  …{sandbox.rolloutId.slice(-8)}
                </Link>
              </Td>
            )}
            <Td className="py-0.5">
              <span className="flex gap-1">
                {isThere(sandbox) && (
                  <>
                    <RowButton onClick={() => onShell(sandbox)}>Open shell</RowButton>
                    <RowButton
                      disabled={busy}
                      title="Kept for 30 min from now, after its rollout is done with it"
                      onClick={() => onKeep(sandbox)}
                    >
                      Keep 30 min
                    </RowButton>
                  </>
                )}
                {sandbox.state === "kept" && (
                  <RowButton disabled={busy} onClick={() => onLetGo(sandbox)}>
                    Close now
                  </RowButton>
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
            </Td>
            <Td right>{sandbox.attempt}</Td>
            <Td className="text-sm">{sandbox.runtime}</Td>
            <Td className="mono max-w-[220px] truncate text-sm">
              <span title={sandbox.image ?? undefined}>{visibleText(sandbox.image ?? "none")}</span>
            </Td>
            <Td className="max-w-[160px] truncate text-sm">
              <span title={sandbox.network}>{visibleText(sandbox.network)}</span>
            </Td>
            <Td right>
              <TimeAgo at={sandbox.openedAt} />
            </Td>
            <Td right className="whitespace-nowrap">
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
  const kept =
    left === null || (state !== "kept" && state !== "open")
      ? null
      : left > 0
        ? `${state === "open" ? "then kept, " : ""}${formatDuration(Math.ceil(left / 60_000) * 60_000)} left`
        : state === "kept"
          ? "closing"
          : null;
  return (
    <span className="inline-flex max-w-[260px] items-center gap-1.5" title={kept ? formatUtc(keepUntil) : undefined}>
      <span aria-hidden="true" className={tone}>
        {mark}
      </span>
      <span className={state === "lost" ? "text-failed" : undefined}>
        {state !== "open" ? state : idleSince === null ? "in use" : "idle"}
      </span>
      {kept && <span className="whitespace-nowrap text-g7">{kept}</span>}
      {!kept && reason && (
        <span className="truncate text-g7" title={reason}>
          {visibleText(reason)}
        </span>
      )}
    </span>
  );
}

function Lived({ sandbox: { openedAt, closedAt } }: { sandbox: SandboxInfo }): JSX.Element {
  const now = useNow();
  const end = closedAt ? Date.parse(closedAt) : now;
  return <>{formatDuration(openedAt && end ? Math.max(0, end - Date.parse(openedAt)) : null)}</>;
}

function RowButton(rest: Omit<ButtonHTMLAttributes<HTMLButtonElement>, "className">): JSX.Element {
  return (
    <button
      type="button"
      className="h-6 rounded-md border border-g4 bg-g0 px-2 text-sm whitespace-nowrap hover:bg-g2 disabled:opacity-50"
      {...rest}
    />
  );
}
