/**
 * SkyRL's own Tinker server on CPU (its JAX backend), in a folder of its own on a free port. It can be killed and started again over the
 * same database and checkpoints, as after a crash of its machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@rolldeck/queue/testing/free-port";
import { skyrlPython } from "./skyrl-python.ts";

export interface SkyrlServer {
  readonly url: string;
  /** Where it keeps adapters: `<model id>/sampler_weights/<name>.tar.gz`. */
  readonly checkpoints: string;
  readonly database: string;
  /** Its whole process group, as kill −9 does. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface SkyrlServerOptions {
  /** Its database, checkpoints, compiled kernels and log. */
  readonly folder: string;
  /** Model folder with safetensors weights. */
  readonly model: string;
  readonly maxRank?: number;
  /** Rows of one training pass, and samples of one batch: each further size is compiled anew. */
  readonly microBatch?: number;
  readonly sampleBatch?: number;
}

/**
 * The server reads its parent's command line for `uv run` and starts its engine through `uv`. This stands in for it: it runs what follows
 * `-m`, as a child where the server must find it as its parent.
 */
const uv = `#!/bin/bash
until [ "$1" = "-m" ]; do shift; done
if [ "$2" = "skyrl.tinker.api" ]; then "$ROLLDECK_SKYRL_PYTHON" "$@"; else exec "$ROLLDECK_SKYRL_PYTHON" "$@"; fi
`;

/** Not started yet. */
export async function skyrlServer(options: SkyrlServerOptions): Promise<SkyrlServer> {
  const { folder, model, maxRank = 8, microBatch = 4, sampleBatch = 16 } = options;
  const python = skyrlPython();
  const bin = path.join(folder, "bin");
  const checkpoints = path.join(folder, "checkpoints");
  const database = path.join(folder, "tinker.db");
  await mkdir(bin, { recursive: true });
  await mkdir(checkpoints, { recursive: true });
  await writeFile(path.join(bin, "uv"), uv);
  await chmod(path.join(bin, "uv"), 0o755);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const backend = {
    max_lora_adapters: 4,
    max_lora_rank: maxRank,
    train_micro_batch_size: microBatch,
    sample_max_num_sequences: sampleBatch,
  };
  const args = ["run", "-m", "skyrl.tinker.api", "--base-model", model, "--backend", "jax"];
  args.push("--backend-config", JSON.stringify(backend), "--database-url", `sqlite:///${database}`);
  args.push("--checkpoints-base", checkpoints, "--host", "127.0.0.1", "--port", String(port));
  const env = {
    ...process.env,
    ROLLDECK_SKYRL_PYTHON: python,
    PATH: `${bin}:${process.env.PATH ?? ""}`,
    JAX_PLATFORMS: "cpu",
    XLA_FLAGS: "--xla_cpu_multi_thread_eigen=false",
    // A second start finds what the first one compiled.
    JAX_COMPILATION_CACHE_DIR: path.join(folder, "compiled"),
    JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: "0",
    HF_HUB_OFFLINE: "1",
    TRANSFORMERS_OFFLINE: "1",
  };
  const log = path.join(folder, "server.log");
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    process.kill(-child.pid, "SIGKILL");
    await gone;
  };
  return {
    url,
    checkpoints,
    database,
    kill,
    start: async () => {
      // A group of its own: the stand-in, the server and its engine end together.
      child = spawn(path.join(bin, "uv"), args, {
        env,
        cwd: folder,
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const out = createWriteStream(log, { flags: "a" });
      child.stdout?.pipe(out, { end: false });
      child.stderr?.pipe(out, { end: false });
      for (const end = performance.now() + 120_000; performance.now() < end; await sleep(250)) {
        const answer = await fetch(`${url}/api/v1/healthz`).catch(() => null);
        if (answer?.ok) return;
        if (child.exitCode !== null) break;
      }
      throw new Error(`SkyRL's server did not start: ${(await readFile(log, "utf8")).slice(-2_000)}`);
    },
  };
}
