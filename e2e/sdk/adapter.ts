/** What a LoRA checkpoint of the worker holds, read from its PEFT export. */
import { z } from "zod";
import type { StartedGpuWorker } from "../stack/started-gpu-worker.ts";

const Header = z
  .object({ __metadata__: z.unknown() })
  .catchall(z.object({ dtype: z.literal("F32"), data_offsets: z.tuple([z.int(), z.int()]) }));
const PeftConfig = z.object({ peft_type: z.literal("LORA"), r: z.int(), target_modules: z.array(z.string()) });

export interface Adapter {
  readonly config: z.infer<typeof PeftConfig>;
  /** By PEFT's names. */
  readonly tensors: ReadonlyMap<string, Float32Array>;
}

/** @param tinkerPath `tinker://<model>/<kind>/<name>` */
export async function readAdapter(worker: StartedGpuWorker, tinkerPath: string): Promise<Adapter> {
  const place = tinkerPath.replace("tinker://", "");
  const reply = await fetch(`${worker.url}/ext/v1/checkpoints/${place}/export?format=peft`, {
    headers: { "X-API-Key": worker.apiKey },
  });
  if (!reply.ok) throw new Error(`${tinkerPath}: ${reply.status} ${await reply.text()}`);
  const files = untar(Buffer.from(await reply.arrayBuffer()));
  const [config, tensors] = [files.get("adapter_config.json"), files.get("adapter_model.safetensors")];
  if (config === undefined || tensors === undefined) throw new Error(`${tinkerPath}: not a PEFT folder`);
  return { config: PeftConfig.parse(JSON.parse(config.toString())), tensors: tensorsOf(tensors) };
}

/** Files of a plain tar: a block of 512 bytes with name and length (octal), then the content in whole blocks. */
function untar(tar: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const name = tar.toString("utf8", at, at + 100).replace(/\0.*$/s, "");
    const length = Number.parseInt(tar.toString("utf8", at + 124, at + 136), 8);
    files.set(name, tar.subarray(at + 512, at + 512 + length));
    at += 512 + Math.ceil(length / 512) * 512;
  }
  return files;
}

/** A safetensors file: the header's length in 8 bytes, a JSON header, then the data; float32 is all that an adapter holds. */
function tensorsOf(file: Buffer): Map<string, Float32Array> {
  const start = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__, ...entries } = Header.parse(JSON.parse(file.toString("utf8", 8, start)));
  return new Map(
    Object.entries(entries).map(
      ([
        name,
        {
          data_offsets: [from, to],
        },
      ]) => [name, new Float32Array(Uint8Array.from(file.subarray(start + from, start + to)).buffer)],
    ),
  );
}
