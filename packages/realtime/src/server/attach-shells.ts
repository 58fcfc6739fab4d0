/** The namespace `/shell`: who may open shells at all is asked before a socket is let in. */

import { shellNamespace } from "@rolldeck/contracts/wire/shell";
import type { ClientToServer, ServerToClient } from "@rolldeck/contracts/wire/socket";
import type { Server } from "socket.io";
import { type ShellCaller, type ShellHost, type ShellLimits, shellLimits } from "./shell-host.ts";
import { ShellSession } from "./shell-session.ts";
import type { RunSocket } from "./socket-session.ts";

export interface AttachShellsOptions {
  readonly host: ShellHost;
  readonly caller: (socket: Pick<RunSocket, "request" | "handshake">) => ShellCaller;
  readonly onError: (error: unknown) => void;
  readonly limits?: Partial<ShellLimits>;
}

/** @returns what ends them all and resolves when each was left */
export function attachShells(
  io: Server<ClientToServer, ServerToClient>,
  { host, caller, onError, limits }: AttachShellsOptions,
): () => Promise<void> {
  const sessions = new Set<ShellSession>();
  const slots = { used: 0 };
  const space = io.of(shellNamespace);
  space.use((socket, next) => {
    host.mayOpen(caller(socket)).then(
      (yes) => next(yes ? undefined : new Error("only who may change things opens shells")),
      (error: unknown) => {
        onError(error);
        next(new Error("sign-in could not be checked"));
      },
    );
  });
  space.on("connection", (socket) => {
    const session = new ShellSession(socket, {
      host,
      limits: { ...shellLimits, ...limits },
      slots,
      caller: caller(socket),
      onError,
    });
    sessions.add(session);
    socket.on("disconnect", () => void session.stop().finally(() => sessions.delete(session)));
  });
  return async () => {
    await Promise.all([...sessions].map((session) => session.stop()));
  };
}
