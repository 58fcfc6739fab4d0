/** A socket in the shells' namespace that says whatever a test has it say. */
import { shellNamespace } from "@rolldeck/contracts/wire/shell";
import { io, type Socket } from "socket.io-client";

export const rawShellSocket = (url: string, token: string, headers: Readonly<Record<string, string>> = {}): Socket =>
  io(`${url}${shellNamespace}`, {
    reconnection: false,
    forceNew: true,
    transports: ["websocket"],
    auth: { token },
    extraHeaders: { ...headers },
  });
