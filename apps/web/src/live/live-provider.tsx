"use client";
/** One socket for the page. Everything it brings is a hint: rows are fetched or patched by `seq`. */
import type { RunEvent } from "@rolldeck/contracts/events";
import { type ConnectionState, LiveConnection } from "@rolldeck/realtime/client/live-connection";
import { LiveRun } from "@rolldeck/realtime/client/live-run";
import {
  createContext,
  type JSX,
  type ReactNode,
  useContext,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";

const Live = createContext<LiveConnection | null>(null);
const connecting: ConnectionState = { connected: false, lastMessageAt: null, reason: "connecting" };
const subscribeToNothing = () => () => {};

export function LiveProvider({ children }: { children: ReactNode }): JSX.Element {
  const [connection, setConnection] = useState<LiveConnection | null>(null);
  useEffect(() => {
    const opened = new LiveConnection();
    setConnection(opened);
    return () => opened.close();
  }, []);
  return <Live value={connection}>{children}</Live>;
}

export function useConnectionState(): ConnectionState {
  const connection = useContext(Live);
  return useSyncExternalStore(
    connection?.subscribe ?? subscribeToNothing,
    connection?.getState ?? (() => connecting),
    () => connecting,
  );
}

/** Calls back with ids of runs that changed; with [] when everything should be fetched again. */
export function useRunsChanged(listener: (runIds: readonly string[]) => void): void {
  const connection = useContext(Live);
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => connection?.watchRuns((runIds) => latest.current(runIds)), [connection]);
}

/**
 * Follows a run from `after` (its `head` when it was loaded; null while unknown): every later event once, in order.
 */
export function useRunEvents(
  runId: string,
  after: number | null,
  onEvents: (events: readonly RunEvent[]) => void,
): void {
  const connection = useContext(Live);
  const latest = useRef(onEvents);
  latest.current = onEvents;
  const from = useRef(after);
  from.current ??= after;
  const known = after !== null;
  useEffect(() => {
    if (!connection || !known) return;
    const live = new LiveRun(connection, {
      runId,
      after: from.current ?? 0,
      onEvents: (events) => {
        from.current = events.at(-1)?.seq ?? from.current;
        latest.current(events);
      },
    });
    return () => live.stop();
  }, [connection, runId, known]);
}
