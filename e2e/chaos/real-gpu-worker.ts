/** The Python GPU worker behind a loopback proxy of the test's own, which can end it right before a request reaches it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const root = path.resolve(import.meta.dirname, "../..");
export const gpuWorkerKey = "tml-chaos-test-only";

export interface RealGpuWorker {
  /** The proxy's address; it stays while the worker behind it comes and goes. */
  readonly url: string;
  readonly apiKey: string;
  /** Ends the worker, as kill −9 does, when the `nth` request of this path arrives, which it then never sees. */
  killBefore(path: string, nth: number): Promise<void>;
  start(): Promise<void>;
  /** Ends it, as kill −9 does, and starts it again. */
  restart(options?: { readonly downMs?: number }): Promise<void>;
  close(): Promise<void>;
}

/** @throws when ROLLDECK_PYTHON names no interpreter: `npm test` prepares one and sets it */
export async function startRealGpuWorker(dataFolder: string): Promise<RealGpuWorker> {
  const python = process.env.ROLLDECK_PYTHON;
  if (!python) throw new Error("set ROLLDECK_PYTHON to an interpreter with torch; npm test does so by itself");
  let child: ChildProcess | null = null;
  let port = 0;
  let trap: { path: string; left: number; sprung: () => void } | null = null;

  const kill = async (): Promise<void> => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  const start = async (): Promise<void> => {
    const args = ["-m", "rolldeck_gpu_worker", "--host", "127.0.0.1", "--port", "0", "--data-dir", dataFolder];
    child = spawn(python, [...args, "--model-roots", path.join(root, "infra/models")], {
      cwd: path.join(root, "infra/gpu-worker"),
      env: { PATH: process.env.PATH ?? "", ROLLDECK_GPU_WORKER_KEY: gpuWorkerKey, OMP_WAIT_POLICY: "PASSIVE" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    port = await portOf(child);
  };
  const proxy = createServer(async (incoming, outgoing) => {
    if (trap !== null && incoming.url === trap.path && --trap.left === 0) {
      const { sprung } = trap;
      trap = null;
      await kill();
      sprung();
    }
    pass(incoming, outgoing, port);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  await start();
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    apiKey: gpuWorkerKey,
    killBefore: (trapPath, nth) =>
      new Promise((sprung) => {
        trap = { path: trapPath, left: nth, sprung };
      }),
    start,
    restart: async ({ downMs = 0 } = {}) => {
      await kill();
      await sleep(downMs);
      await start();
    },
    close: async () => {
      await kill();
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}

/** The worker prints one line of JSON with its address once it listens. */
async function portOf(child: ChildProcess): Promise<number> {
  let said = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(50)) {
    const url = /"url": "http:\/\/127\.0\.0\.1:(\d+)"/.exec(said);
    if (url) return Number(url[1]);
    if (child.exitCode !== null) break;
  }
  throw new Error(`the GPU worker did not start: ${said}`);
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, port: number): void {
  const { method, url, headers } = incoming;
  const onward = forward({ host: "127.0.0.1", port, method, path: url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  // What is behind is gone: the caller sees a cut connection, as it would without a proxy.
  onward.once("error", () => incoming.socket.destroy());
  outgoing.once("close", () => onward.destroy());
  incoming.pipe(onward);
}
