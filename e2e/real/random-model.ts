/** Model folders with random weights, for what trains with packages of others. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

const env = { ...process.env, HF_HUB_OFFLINE: "1", TRANSFORMERS_OFFLINE: "1", OMP_NUM_THREADS: "1" };

/** @param python interpreter with torch and transformers @param from a folder with config.json and a tokenizer */
export async function makeRandomModel(python: string, from: string, to: string, seed: number): Promise<void> {
  const script = path.join(import.meta.dirname, "random_qwen3.py");
  await promisify(execFile)(python, [script, from, to, String(seed)], { env });
}
