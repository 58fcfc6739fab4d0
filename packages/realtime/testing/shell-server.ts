/** The socket end of shells on a port of its own, for tests of its clients: any caller may open the one shell that a test gives. */
import { createServer } from "node:http";
import type { ClientToServer, ServerToClient } from "@rolldeck/contracts/wire/socket";
import { socketPath } from "@rolldeck/contracts/wire/socket";
import { Server } from "socket.io";
import { attachShells } from "../src/server/attach-shells.ts";
import type { OpenedShell, ShellLimits } from "../src/server/shell-host.ts";

export interface ShellServer {
  readonly url: string;
  /** What went wrong on the server's side. */
  readonly errors: readonly unknown[];
  close(): Promise<void>;
}

export async function startShellServer(
  open: () => Promise<OpenedShell>,
  limits: Partial<ShellLimits> = {},
): Promise<ShellServer> {
  const errors: unknown[] = [];
  const server = createServer();
  const io = new Server<ClientToServer, ServerToClient>(server, { path: socketPath });
  const stop = attachShells(io, {
    host: { mayOpen: async () => true, open },
    caller: ({ request }) => ({ request, token: null }),
    onError: (error) => errors.push(error),
    limits,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    errors,
    close: async () => {
      await stop();
      await io.close();
    },
  };
}
