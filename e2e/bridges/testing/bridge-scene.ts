/** Everything around an outside trainer: API, worker, GPU worker, and a server that samples what the trainer synced last. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { tasks } from "@rolldeck/tasks/registry";
import { compose } from "../../../apps/api/src/compose.ts";
import { readSettings } from "../../../apps/api/src/env.ts";
import { createLog } from "../../../apps/api/src/log.ts";
import { ownerTokenFile } from "../../../apps/api/src/owner-token.ts";
import { type Rig, smokeConfig, startRig } from "../../../apps/worker/testing/rig.ts";
import { readTensors } from "../../real/exported-model.ts";
import { makeRandomModel } from "../../real/random-model.ts";
import { startGpuWorker } from "../../stack/started-gpu-worker.ts";
import { type PolicyServer, startPolicyServer } from "./policy-server.ts";
import { startTrainerProcess, type TrainerProcess } from "./trainer-process.ts";

const root = path.resolve(import.meta.dirname, "../../..");

/** What a bridge's part of the scene is made of. */
export interface SceneParts {
  /** Of temporary files. */
  readonly folder: string;
  /** Address of the policy server. */
  readonly policy: string;
  /** What a trainer finds Rolldeck by. */
  readonly trainerEnv: Readonly<Record<"ROLLDECK_URL" | "ROLLDECK_TOKEN", string>>;
}
export interface Bridge {
  /** Its folder under infra/bridges. */
  readonly name: string;
  /** Interpreter with the trainer's packages. */
  readonly python: string;
  /** Where its runs sample, and what the environments of trainers and workers say of it. */
  readonly open: (parts: SceneParts) => Promise<{
    readonly backend: RunConfigInput["backend"];
    readonly trainerEnv?: Readonly<Record<string, string>>;
    readonly workerEnv?: Readonly<Record<string, string>>;
  }>;
}

export interface BridgeScene {
  readonly folder: string;
  readonly rig: Rig;
  readonly policy: PolicyServer;
  /** A driven run of so many steps. @param change of its backend */
  launch(steps: number, change?: RunConfigInput["backend"]): Promise<string>;
  /** Writes what the bridge's `train_loop.py` reads. @returns the file */
  settings(given: Readonly<Record<string, number>>): string;
  /** A trainer of the run; a second one over the same folder goes on where the weights are. */
  startTrainer(runId: string, settings: Readonly<Record<string, number>>): TrainerProcess;
  /** Weights of a version that the trainer synced. */
  weightsOf(version: number): Map<string, Float32Array>;
  close(): Promise<void>;
}

/** An untrained policy earns nothing: every second rollout of an instance is paid, so that there is a gradient. */
function everySecond() {
  const graded = new Map<number, number>();
  const verify = async ({ index }: { readonly index: number }) => {
    const before = graded.get(index) ?? 0;
    graded.set(index, before + 1);
    return { reward: before % 2, success: false, parts: {}, notes: null };
  };
  return { ...tasks["key-chain"], verify };
}

export async function startBridgeScene(bridge: Bridge): Promise<BridgeScene> {
  const closing: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const each of closing.reverse()) await each();
  };
  try {
    return await openScene(bridge, closing, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function openScene(bridge: Bridge, closing: (() => unknown)[], close: () => Promise<void>): Promise<BridgeScene> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bridge-"));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  const [base, served] = [path.join(folder, "base"), path.join(folder, "served")];
  const quickstart = path.join(root, "infra/models/quickstart");
  await makeRandomModel(bridge.python, quickstart, base, 3);
  // As the worker's own folders are: the weights alone are new.
  copyFileSync(path.join(quickstart, "config.json"), path.join(base, "config.json"));
  mkdirSync(served);
  const worker = await startGpuWorker({ flags: ["--model-roots", served] });
  closing.push(() => worker.stop());
  const policy = await startPolicyServer(worker, served);
  closing.push(() => policy.close());
  const workerEnv: Record<string, string> = {};
  const rig = await startRig({ workers: 0, env: workerEnv, parts: { tasks: { "key-chain": everySecond() } } });
  closing.push(() => rig.close());
  const trainerEnv = await startApi(rig, folder, closing);
  const opened = await bridge.open({ folder, policy: policy.url, trainerEnv });
  Object.assign(workerEnv, opened.workerEnv);
  await rig.addWorker();
  const launch: BridgeScene["launch"] = (steps, change) =>
    rig.launch(
      smokeConfig({
        stepSource: "driven",
        backend: { ...opened.backend, ...change },
        model: { name: "quickstart", warmStart: null },
        agent: { ...smokeConfig().agent, maxTurns: 3, sampling: { temperature: 1, maxTokensPerTurn: 16 } },
        budget: { steps },
      }),
    );
  const settings: BridgeScene["settings"] = (given) => {
    const file = path.join(folder, "settings.json");
    writeFileSync(file, JSON.stringify({ ...given, base, served, engines: policy.url }));
    return file;
  };
  const startTrainer: BridgeScene["startTrainer"] = (runId, given) => {
    const env = { ...trainerEnv, ...opened.trainerEnv, ROLLDECK_RUN: runId };
    const trainer = startTrainerProcess({ bridge: bridge.name, python: bridge.python }, settings(given), env);
    closing.push(() => trainer.kill());
    return trainer;
  };
  const weightsOf = (version: number) => readTensors(path.join(served, `policy-${version}`));
  return { folder, rig, policy, launch, settings, startTrainer, weightsOf, close };
}

/** @returns what a trainer finds it by */
async function startApi(rig: Rig, folder: string, closing: (() => unknown)[]) {
  const env = { ROLLDECK_DATABASE_URL: rig.database.url, ROLLDECK_DATA_DIR: folder, ROLLDECK_PORT: "0" };
  const api = await compose(readSettings({ ...env, ROLLDECK_LOG_LEVEL: "silent" }), createLog("silent"));
  closing.push(() => api.close());
  const { url } = await api.listen();
  return { ROLLDECK_URL: url, ROLLDECK_TOKEN: (await readFile(ownerTokenFile(folder), "utf8")).trim() };
}
