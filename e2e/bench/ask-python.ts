/** Runs a benchmark's Python script on one thread, beside the GPU worker's own package; its last line of stdout is its answer. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { z } from "zod";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";

const root = path.resolve(import.meta.dirname, "../..");
export const workerFolder = path.join(root, "infra/gpu-worker");

/** The interpreter that the GPU worker's tests run with: it has `transformers` too. */
export const testPython = (progress: (line: string) => void): Promise<string> =>
  preparePython({ root, withTests: true, torch: "cpu", env: process.env, onProgress: ({ step }) => progress(step) });

interface Question<T> {
  readonly python: string;
  /** Below e2e/bench. */
  readonly script: string;
  readonly args?: readonly string[];
  /** Sent to its stdin as JSON. */
  readonly input?: unknown;
  readonly env?: Readonly<Record<string, string>>;
  readonly answer: z.ZodType<T>;
}

/** @throws when the script fails, with the end of what it said */
export async function askPython<T>({ python, script, args = [], input, env = {}, answer }: Question<T>): Promise<T> {
  const file = path.join(import.meta.dirname, script);
  const child = spawn(python, [file, ...args], {
    env: {
      ...process.env,
      PYTHONPATH: workerFolder,
      PYTHONDONTWRITEBYTECODE: "1",
      OMP_NUM_THREADS: "1",
      OMP_WAIT_POLICY: "PASSIVE",
      HF_HUB_OFFLINE: "1",
      ...env,
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exit = once(child, "close");
  child.stdin.end(JSON.stringify(input ?? null));
  const [said, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await exit;
  if (code !== 0) throw new Error(`${script}: exit ${code}\n${errors.slice(-2_000)}`);
  return answer.parse(JSON.parse(said.trimEnd().split("\n").at(-1) ?? ""));
}
