/** Finds a port to listen on. The caller binds at once; a race shows as EADDRINUSE and is retried by the supervisor. */
import { createServer } from "node:net";

const canListen = (host: string, port: number): Promise<number | null> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(null));
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : null));
    });
  });

/** The wanted port, or the next free one above it (at most 50 further on); 0 asks the system for any. */
export async function freePort(host: string, wanted: number): Promise<number> {
  if (wanted === 0) {
    const any = await canListen(host, 0);
    if (any !== null) return any;
  }
  for (let port = wanted; port <= Math.min(wanted + 50, 65_535); port += 1) {
    const found = await canListen(host, port);
    if (found !== null) return found;
  }
  throw new Error(`no free port on ${host} from ${wanted} on; choose another with --port`);
}
