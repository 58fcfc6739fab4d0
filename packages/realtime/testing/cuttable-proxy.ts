/** A network that can be cut: TCP between a client and a server, where every connection can be torn down and new ones refused. */
import { connect, createServer, type Socket } from "node:net";

export interface CuttableProxy {
  readonly port: number;
  readonly url: string;
  /** Tears down all connections and refuses new ones. */
  cut(): void;
  restore(): void;
  /** Keeps connections and passes nothing on, as a sleeping laptop does. */
  freeze(): void;
  close(): Promise<void>;
}

export async function startCuttableProxy(targetPort: number): Promise<CuttableProxy> {
  const sockets = new Set<Socket>();
  let state: "open" | "cut" | "frozen" = "open";
  const server = createServer((client) => {
    if (state === "cut") {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(targetPort, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (data) => state === "open" && upstream.write(data));
    upstream.on("data", (data) => state === "open" && client.write(data));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const tearDown = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    cut() {
      state = "cut";
      tearDown();
    },
    restore() {
      // What a frozen connection swallowed is lost: both ends must notice, as after a sleep.
      if (state === "frozen") tearDown();
      state = "open";
    },
    freeze() {
      state = "frozen";
    },
    async close() {
      tearDown();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
