/** A checkpoint as `/ext/v1/checkpoints/…/export?format=hf` gives it: a tar of a Hugging Face folder. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { z } from "zod";

/** @param checkpoint `tinker://model/kind/name` @returns the folder that holds config.json and model.safetensors */
export async function exportModel(server: { url: string; apiKey: string }, checkpoint: string, folder: string) {
  const place = checkpoint.replace(/^tinker:\/\//, "");
  const answer = await fetch(`${server.url}/ext/v1/checkpoints/${place}/export?format=hf`, {
    headers: { "x-api-key": server.apiKey },
  });
  if (!answer.ok) throw new Error(`export: ${answer.status} ${await answer.text()}`);
  mkdirSync(folder, { recursive: true });
  const tar = path.join(folder, "export.tar");
  writeFileSync(tar, Buffer.from(await answer.arrayBuffer()));
  await promisify(execFile)("tar", ["-xf", tar, "-C", folder]);
  return folder;
}

const Header = z.record(z.string(), z.looseObject({ dtype: z.string(), data_offsets: z.tuple([z.int(), z.int()]) }));

/** Tensors of a folder's safetensors file by name; all are float32. */
export function readTensors(folder: string, name = "model.safetensors"): Map<string, Float32Array> {
  const file = readFileSync(path.join(folder, name));
  const start = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__: _, ...entries } = z
    .record(z.string(), z.unknown())
    .parse(JSON.parse(file.subarray(8, start).toString("utf8")));
  return new Map(
    Object.entries(Header.parse(entries)).map(
      ([
        name,
        {
          dtype,
          data_offsets: [from, to],
        },
      ]) => {
        if (dtype !== "F32") throw new Error(`${name} is ${dtype}`);
        // A copy of its own: what lies in the file need not be aligned.
        return [name, new Float32Array(new Uint8Array(file.subarray(start + from, start + to)).buffer)];
      },
    ),
  );
}

/** Largest absolute difference over all tensors; Infinity when names or shapes differ. */
export function largestDifference(a: Map<string, Float32Array>, b: Map<string, Float32Array>): number {
  if ([...a.keys()].sort().join() !== [...b.keys()].sort().join()) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (const [name, values] of a) {
    const others = b.get(name);
    if (others?.length !== values.length) return Number.POSITIVE_INFINITY;
    for (const [at, value] of values.entries())
      largest = Math.max(largest, Math.abs(value - (others[at] ?? Number.NaN)));
  }
  return largest;
}

/** What `transformers` says of each sequence: log-probabilities of the tokens after the first. */
export async function transformersLogprobs(
  python: string,
  folder: string,
  sequences: readonly (readonly number[])[],
): Promise<number[][]> {
  const child = spawn(python, [path.join(import.meta.dirname, "hf_logprobs.py"), folder], {
    env: { ...process.env, HF_HUB_OFFLINE: "1" },
    stdio: "pipe",
  });
  const exit = once(child, "close");
  child.stdin.end(JSON.stringify({ sequences }));
  const [answer, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await exit;
  if (code !== 0) throw new Error(`transformers could not load the export: ${errors.slice(-2_000)}`);
  return z.array(z.array(z.number())).parse(JSON.parse(answer));
}
