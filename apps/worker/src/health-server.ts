/** /healthz and /metrics on a loopback port, for supervisors and Prometheus. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Measures } from "./measures.ts";

export interface HealthServerOptions {
  readonly port: number;
  readonly measures: Measures;
  /** Null when all is well, else what is wrong. */
  ailment(): Promise<string | null>;
}

/** @throws when the port is taken */
export async function startHealthServer(options: HealthServerOptions): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    if (request.url === "/healthz") {
      options.ailment().then(
        (ailment) =>
          answer(ailment === null ? 200 : 503, "application/json", JSON.stringify({ ok: ailment === null, ailment })),
        () => answer(503, "application/json", JSON.stringify({ ok: false })),
      );
    } else if (request.url === "/metrics") {
      const { registry } = options.measures;
      registry.metrics().then(
        (text) => answer(200, registry.contentType, text),
        () => answer(500, "text/plain", ""),
      );
    } else {
      answer(404, "text/plain", "");
    }
  });
  server.listen(options.port, "127.0.0.1");
  await once(server, "listening");
  return server;
}
