/**
 * A request body around a prompt's ids. The ids leave as the bytes that the prompt keeps: what a turn costs here does not
 * grow with the context beyond the way through the socket.
 */
import type { Prompt } from "@rolldeck/contracts/ports/sampler";

/** Text, bytes, or bytes in parts that are sent one after the other and never joined. */
export type RequestBody = string | Uint8Array | readonly Uint8Array[];

/** From here on copying costs more than the writes it saves. */
const longIdsBytes = 24_576;

/**
 * `before` + the JSON array of ids + `after`, as UTF-8. A long prompt's ids are the prompt's own bytes: they are right until its
 * owner appends, which it does not do before the sample is there.
 */
export function promptBody(before: string, prompt: Prompt, after: string): RequestBody {
  const ids = prompt.json();
  if (ids.length >= longIdsBytes) return [Buffer.from(before), ids, Buffer.from(after)];
  const beforeBytes = Buffer.byteLength(before);
  const body = Buffer.allocUnsafe(beforeBytes + ids.length + Buffer.byteLength(after));
  body.write(before, 0);
  body.set(ids, beforeBytes);
  body.write(after, beforeBytes + ids.length);
  return body;
}
