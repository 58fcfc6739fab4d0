/** Adapters as SkyRL's server leaves them on disk. */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { readTensors } from "../../real/exported-model.ts";

/** Every sampler checkpoint of a model, oldest first. @returns tensors by name */
export async function samplerAdapters(checkpoints: string, modelId: string): Promise<Map<string, Float32Array>[]> {
  const folder = path.join(checkpoints, modelId, "sampler_weights");
  const archives = (await readdir(folder)).filter((name) => name.endsWith(".tar.gz"));
  const aged = await Promise.all(
    archives.map(async (name) => ({ name, savedMs: (await stat(path.join(folder, name))).mtimeMs })),
  );
  aged.sort((one, other) => one.savedMs - other.savedMs);
  const read: Map<string, Float32Array>[] = [];
  for (const { name } of aged) read.push(await readArchive(path.join(folder, name)));
  return read;
}

async function readArchive(archive: string): Promise<Map<string, Float32Array>> {
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-adapter-"));
  try {
    await promisify(execFile)("tar", ["-xzf", archive, "-C", folder]);
    const found = (await readdir(folder, { recursive: true })).find((name) => name.endsWith(".safetensors"));
    if (found === undefined) throw new Error(`${archive} holds no safetensors file`);
    return readTensors(path.join(folder, path.dirname(found)), path.basename(found));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
