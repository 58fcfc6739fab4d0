/** A real redis-server on a free port, which a test may stop and start again; its data survives in a temporary folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import type { RestartableServer } from "./postgres.ts";

export interface TestRedis extends RestartableServer {
  /** Ends it at once, as a crash would; `start` brings it back on the same port. */
  crash(): Promise<void>;
}

/** @throws when no `redis-server` is on the PATH: `apt-get install -y redis-server` brings it. */
export async function startRedis(): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-queue-redis-"));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    child = spawn(
      "redis-server",
      ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--save", ""],
      { stdio: "ignore" },
    );
    const failed = once(child, "error").then(([error]) => Promise.reject(error));
    await Promise.race([failed, answers(port)]);
    failed.catch(() => {});
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  };
  const stop = (): Promise<void> => end("SIGTERM");
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    stop,
    crash: () => end("SIGKILL"),
    remove: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answers(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = createConnection({ port, host: "127.0.0.1" }, () => {
        socket.write("PING\r\n");
      });
      socket.once("data", (reply) => {
        socket.destroy();
        resolve(reply.toString().startsWith("+PONG"));
      });
      socket.once("error", () => resolve(false));
    });
    if (connected) return;
    await sleep(50);
  }
  throw new Error(`redis-server does not answer on port ${port}`);
}
