/**
 * Live updates. The socket only hints: events carry their `seq`, a client that sees a gap (or reconnects) subscribes again
 * with the last `seq` it has and gets exactly what follows.
 */
import { z } from "zod";
import type { RunEvent } from "../events.ts";
import type { ServerToShell, ShellToServer } from "./shell.ts";

export const Subscribe = z.object({ runId: z.string().max(64), after: z.int().min(0) });
export type Subscribe = z.infer<typeof Subscribe>;
export const Unsubscribe = z.object({ runId: z.string().max(64) });

export interface EventsMessage {
  readonly runId: string;
  /** Consecutive by seq; the first is `after + 1` of what this socket was last sent. */
  readonly events: readonly RunEvent[];
  /** Newest seq of the run when sent. */
  readonly head: number;
}
export interface RunsChangedMessage {
  readonly runIds: readonly string[];
}
/** In the namespace `/shell` only the shell's events are heard, in the other none of them. */
export interface ServerToClient extends ServerToShell {
  events: (message: EventsMessage) => void;
  "runs-changed": (message: RunsChangedMessage) => void;
}
export type SubscribeReply =
  | { readonly ok: true; readonly head: number }
  | { readonly ok: false; readonly error: string };
export interface ClientToServer extends ShellToServer {
  subscribe: (request: Subscribe, reply: (answer: SubscribeReply) => void) => void;
  unsubscribe: (request: z.infer<typeof Unsubscribe>) => void;
  /** Receive `runs-changed` for the run list. */
  "watch-runs": (reply: (answer: SubscribeReply) => void) => void;
}
export const socketPath = "/socket.io";
export const maxEventsPerMessage = 500;
