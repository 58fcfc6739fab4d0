"use client";
import "@xterm/xterm/css/xterm.css";
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import type { ShellEnd } from "@rolldeck/contracts/wire/shell";
import { type JSX, useEffect, useRef, useState } from "react";
import { Button } from "../../../design/button.tsx";
import { Chip } from "../../../design/chip.tsx";
import { Kbd } from "../../../design/kbd.tsx";
import { shortenId } from "../../../format/numbers.ts";
import { leaveKey, type StartedTerminal, startTerminal } from "./start-terminal.ts";

type ShellState = { readonly kind: "connecting" } | { readonly kind: "open" } | ({ readonly kind: "ended" } & ShellEnd);

/**
 * A shell in a sandbox. In one that its rollout still uses it opens only after a word of warning; one that ended is opened again by
 * hand, never by itself.
 */
export function ShellPanel({ sandbox, onClose }: { sandbox: SandboxInfo; onClose(): void }): JSX.Element {
  const [accepted, setAccepted] = useState(sandbox.state !== "open" && sandbox.state !== "opening");
  const [round, setRound] = useState(0);
  return (
    <section aria-label="Shell" className="flex min-h-0 flex-1 flex-col border-t border-g4">
      {accepted ? (
        <OpenShell key={round} sandbox={sandbox} onAgain={() => setRound(round + 1)} onClose={onClose} />
      ) : (
        <div className="flex flex-col gap-3 p-4">
          <p className="max-w-[640px]">
            <Chip tone="paused">live</Chip> This is the live sandbox of a running rollout: what you type changes what
            the agent sees, and its own clean-up may end what you start. That you were here is kept in the run's log.
          </p>
          <div className="flex gap-2">
            {/* It was asked for by a key or a click just now: the next key may say yes. */}
            <Button autoFocus onClick={() => setAccepted(true)}>
              Open the shell
            </Button>
            <Button look="quiet" onClick={onClose}>
              Cancel
            </Button>
          </div>
        </div>
      )}
    </section>
  );
}

function OpenShell({
  sandbox,
  onAgain,
  onClose,
}: {
  sandbox: SandboxInfo;
  onAgain(): void;
  onClose(): void;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const [state, setState] = useState<ShellState>({ kind: "connecting" });
  const { runId, sandboxId } = sandbox;
  useEffect(() => {
    if (!box.current) return;
    let over = false;
    let started: StartedTerminal | null = null;
    const options = {
      ...{ box: box.current, runId, sandboxId },
      onOpen: () => !over && setState({ kind: "open" }),
      onEnd: (end: ShellEnd) => !over && setState({ kind: "ended", ...end }),
      onLeave: () => leave.current?.focus(),
    };
    startTerminal(options).then(
      (terminal) => {
        started = terminal;
        if (over) terminal.close();
      },
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : "the terminal could not be loaded";
        options.onEnd({ reason, exitCode: null });
      },
    );
    return () => {
      over = true;
      started?.close();
    };
  }, [runId, sandboxId]);
  return (
    <>
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-g3 bg-g1 px-4">
        <span className="mono text-sm">{shortenId(sandboxId, 8)}</span>
        <StateChip state={state} sandbox={sandbox} />
        {state.kind === "open" && (
          <span className="text-xs text-g7">
            All keys go to the shell; <Kbd>{leaveKey}</Kbd> leaves the terminal. Without a key it ends after 15 min.
          </span>
        )}
        <span className="ml-auto flex items-center gap-2">
          {state.kind === "ended" && (
            <Button className="h-7!" onClick={onAgain}>
              Open again
            </Button>
          )}
          <button
            ref={leave}
            type="button"
            className="h-7 rounded-md px-2 text-sm text-g8 hover:bg-g3"
            onClick={onClose}
          >
            {state.kind === "ended" ? "Close" : "End shell"}
          </button>
        </span>
      </div>
      <div className="min-h-[220px] flex-1 overflow-hidden bg-g0 px-2 py-1">
        <div ref={box} role="application" aria-label="Terminal" className="size-full" />
      </div>
    </>
  );
}

function StateChip({ state, sandbox }: { state: ShellState; sandbox: SandboxInfo }): JSX.Element {
  if (state.kind === "connecting") return <Chip tone="running">connecting</Chip>;
  if (state.kind === "ended")
    return (
      <span role="status">
        <Chip tone={state.exitCode === 0 ? "neutral" : "failed"}>ended: {state.reason}</Chip>
      </span>
    );
  return sandbox.state === "open" ? (
    <Chip tone="paused" title="What you type changes what the agent sees">
      live sandbox of a running rollout
    </Chip>
  ) : (
    <Chip tone="done">kept sandbox</Chip>
  );
}
