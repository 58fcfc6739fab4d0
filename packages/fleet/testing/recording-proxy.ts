/** Stands between a client and a Docker daemon, passes everything on, and keeps what containers were asked for. */

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface RecordingProxy {
  readonly socket: string;
  /** Bodies of `POST /containers/create`, as they came. */
  readonly created: readonly { readonly name: string | null; readonly body: unknown }[];
  /** Method and path of everything. */
  readonly requests: readonly string[];
  stop(): Promise<void>;
}

export async function startRecordingProxy(daemonSocket: string): Promise<RecordingProxy> {
  const folder = mkdtempSync(join(tmpdir(), "rolldeck-proxy-"));
  const socket = join(folder, "docker.sock");
  const created: { name: string | null; body: unknown }[] = [];
  const requests: string[] = [];
  const server = createServer((from, to) => {
    const url = new URL(from.url ?? "/", "http://docker");
    requests.push(`${from.method} ${url.pathname}`);
    const pieces: Buffer[] = [];
    from.on("data", (piece: Buffer) => pieces.push(piece));
    from.on("end", () => {
      const body = Buffer.concat(pieces);
      if (from.method === "POST" && url.pathname.endsWith("/containers/create"))
        created.push({ name: url.searchParams.get("name"), body: JSON.parse(body.toString()) });
      const { method, url: path, headers } = from;
      const onwards = request({ socketPath: daemonSocket, method, path, headers, agent: false }, (answer) => {
        to.writeHead(answer.statusCode ?? 502, answer.headers);
        to.flushHeaders();
        answer.pipe(to);
      });
      onwards.once("error", () => to.destroy());
      to.once("close", () => onwards.destroy());
      onwards.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    socket,
    created,
    requests,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
