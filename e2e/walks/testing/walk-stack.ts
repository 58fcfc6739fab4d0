/**
 * The stack that walks walk through: real Postgres, API, worker, queue and production pages; the policy alone is scripted, so
 * that what a walk sees is the same every time. Everything is on loopback and free ports and ends with `close`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  startScriptedWorker,
} from "@rolldeck/backends/testing/scripted-worker";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import { createSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import { readSettings } from "../../../apps/api/src/env.ts";
import { startTestApi, type TestApi } from "../../../apps/api/testing/start-api.ts";
import { ensureWebBuilt } from "../../../apps/cli/src/start/web-build.ts";
import { compose } from "../../../apps/worker/src/compose.ts";
import { parseWorkerEnv } from "../../../apps/worker/src/env.ts";
import type { WorkerProcess } from "../../../apps/worker/src/worker-process.ts";

export const root = path.resolve(import.meta.dirname, "../../..");

export interface WalkStack {
  readonly url: string;
  readonly api: TestApi;
  readonly gpu: ScriptedWorker;
  readonly rolldeck: Rolldeck;
  /** A fresh one-time link, as `npm start` prints it. */
  signInLink(): Promise<string>;
  close(): Promise<void>;
}

export interface WalkStackOptions extends ScriptedWorkerOptions {
  /** More of the environment of API and worker: data roots, endpoints, where sandboxes open. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startWalkStack(options: WalkStackOptions = {}): Promise<WalkStack> {
  const settings = listed(options.env ?? {});
  await ensureWebBuilt(root, () => {});
  const webPort = await freePort();
  const web = startPages(webPort);
  const gpu = await startScriptedWorker(options);
  const api = await startTestApi({ webUrl: new URL(`http://127.0.0.1:${webPort}`), ...settings });
  const worker = await startWorker(api, gpu, options.env ?? {});
  await untilPagesAnswer(webPort, web);
  return {
    url: api.url,
    api,
    gpu,
    rolldeck: new Rolldeck({ url: api.url, token: api.ownerToken }),
    signInLink: async () => {
      const { code } = await createSignInCode(api.database.pool);
      return `${api.url}/sign-in?code=${encodeURIComponent(code)}`;
    },
    close: async () => {
      await worker.stop();
      await api.close();
      await gpu.close();
      web.kill("SIGTERM");
      if (web.exitCode === null && web.signalCode === null) await once(web, "exit");
    },
  };
}

/** What the API reads of the variables that a walk sets. */
function listed(env: Readonly<Record<string, string>>) {
  const own = { ROLLDECK_DATABASE_URL: "postgres://unused", ROLLDECK_DATA_DIR: root, ROLLDECK_ROOT: root };
  const { dataRoots, servers, hasJudge, sandboxes } = readSettings({ ...own, ...env });
  return { dataRoots, servers, hasJudge, sandboxes };
}

async function startWorker(
  api: TestApi,
  gpu: ScriptedWorker,
  env: Readonly<Record<string, string>>,
): Promise<WorkerProcess> {
  const worker = await compose(
    parseWorkerEnv(
      {
        ROLLDECK_DATABASE_URL: api.database.url,
        ROLLDECK_GPU_WORKER_URL: gpu.url,
        ROLLDECK_GPU_WORKER_KEY: gpu.apiKey,
        ROLLDECK_ROOT: root,
        ROLLDECK_LOG_LEVEL: "silent",
        ...env,
      },
      root,
    ),
  );
  await worker.start();
  return worker;
}

export function startPages(port: number): ChildProcess {
  const next = path.join(root, "node_modules/next/dist/bin/next");
  return spawn(process.execPath, [next, "start", "-H", "127.0.0.1", "-p", String(port)], {
    cwd: path.join(root, "apps/web"),
    env: { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" },
    stdio: "ignore",
  });
}

export async function untilPagesAnswer(port: number, web: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (web.exitCode !== null) throw new Error(`next start ended with ${web.exitCode}`);
    const answer = await fetch(`http://127.0.0.1:${port}/runs`).catch(() => null);
    if (answer?.ok) return;
    await sleep(100);
  }
  throw new Error("the pages did not answer within 30 s");
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
