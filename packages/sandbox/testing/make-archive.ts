/** A tar of just these entries, whatever they say of themselves. */
import { type Header, pack } from "tar-stream";

export type ArchiveEntry = Partial<Header> & { readonly name: string; readonly body?: string };

export async function makeArchive(...entries: readonly ArchiveEntry[]): Promise<Buffer> {
  const output = pack();
  for (const { body, ...header } of entries) output.entry(header, body ?? "");
  output.finalize();
  const parts: Uint8Array[] = [];
  for await (const chunk of output) if (chunk instanceof Uint8Array) parts.push(chunk);
  return Buffer.concat(parts);
}

export async function* inPieces(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
