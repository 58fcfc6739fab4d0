/**
 * A request body around a prompt's ids. The ids are copied as the bytes that the prompt keeps: what a turn costs here does not
 * grow with the context beyond that one copy.
 */
import type { Prompt } from "@rolldeck/contracts/ports/sampler";

/** `before` + the JSON array of ids + `after`, as UTF-8. */
export function promptBody(before: string, prompt: Prompt, after: string): Uint8Array {
  const ids = prompt.json();
  const beforeBytes = Buffer.byteLength(before);
  const body = Buffer.allocUnsafe(beforeBytes + ids.length + Buffer.byteLength(after));
  body.write(before, 0);
  body.set(ids, beforeBytes);
  body.write(after, beforeBytes + ids.length);
  return body;
}
