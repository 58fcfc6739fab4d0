/** What a comparison of backends needs beside the product: one warm folder that all begin with, the engine of an outside trainer, SkyRL's server. */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type PolicyServer, startPolicyServer } from "../../bridges/testing/policy-server.ts";
import { type RealStack, startRealStack } from "../../real/real-stack.ts";
import { type SkyrlServer, skyrlServer } from "../../skyrl/testing/skyrl-server.ts";
import { type StartedGpuWorker, startGpuWorker } from "../../stack/started-gpu-worker.ts";
import { makeWarmFolder, type WarmStart } from "./warm-folder.ts";

export interface ComparedScene {
  readonly stack: RealStack;
  /** Folder of the weights that every backend begins with. */
  readonly base: string;
  /** One engine per outside trainer, which brings its own weights; by the trainer's name. */
  readonly engine: (trainer: string) => Promise<TrainerEngine>;
  /** Not started. */
  readonly skyrl: SkyrlServer;
  close(): Promise<void>;
}
export interface TrainerEngine {
  readonly server: PolicyServer;
  /** Where the trainer leaves its versions. */
  readonly served: string;
}

const root = path.resolve(import.meta.dirname, "../../..");

/** @param rank of the adapters that SkyRL's server is asked for */
export async function startComparedScene(options: WarmStart & { readonly rank: number }): Promise<ComparedScene> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-compare-"));
  chmodSync(folder, 0o711);
  const closers: (() => Promise<void>)[] = [async () => rmSync(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const one of closers.toReversed()) await one();
  };
  try {
    const base = path.join(folder, "models/quickstart");
    await makeWarmFolder(base, options);
    const skyrl = await skyrlServer({ folder, model: base, maxRank: options.rank, microBatch: 8 });
    closers.push(() => skyrl.kill());
    const endpoints = path.join(folder, "endpoints.json");
    writeFileSync(endpoints, JSON.stringify([{ name: "skyrl", kind: "tinker", urls: [skyrl.url] }]));
    const env = {
      ROLLDECK_MODEL_ROOTS: `${path.dirname(base)}:${path.join(root, "infra/models")}`,
      ROLLDECK_ENDPOINTS: endpoints,
    };
    const stack = await startRealStack({ only: "api,worker,gpu-worker,web", env });
    closers.push(() => stack.stop());
    const engine = async (trainer: string): Promise<TrainerEngine> => {
      const served = path.join(folder, "served", trainer);
      mkdirSync(served, { recursive: true });
      // It answers before the trainer has begun: a run asks it what it can.
      cpSync(base, path.join(served, "policy-0"), { recursive: true });
      writeFileSync(path.join(served, "serving"), "0");
      const worker: StartedGpuWorker = await startGpuWorker({ flags: ["--model-roots", served] });
      closers.push(() => worker.stop());
      const server = await startPolicyServer(worker, served);
      closers.push(() => server.close());
      return { server, served };
    };
    return { stack, base, engine, skyrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}
