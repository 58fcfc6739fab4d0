/**
 * Bytes of a program's output as text. Invariants: never fails; valid UTF-8 comes out as it is; a byte that can be no UTF-8 is
 * U+FFFD, but one in the range of the eight-bit control codes is that control code, so that what cleans text finds it.
 */
export function decodeOutput(bytes: Uint8Array): string {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return text.includes("\ufffd") ? decodeBroken(bytes) : text;
}

/** As UTF-8's table of well-formed sequences has it: lengths by lead byte, and a narrower second byte for some. */
function decodeBroken(bytes: Uint8Array): string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  let valid = 0;
  for (let at = 0; at < bytes.length; ) {
    const { length, complete } = sequenceAt(bytes, at);
    if (!complete) {
      const byte = bytes[at] ?? 0;
      const isControl = byte >= 0x80 && byte <= 0x9f;
      text += decoder.decode(bytes.subarray(valid, at)) + (isControl ? String.fromCharCode(byte) : "\ufffd");
      valid = at + length;
    }
    at += length;
  }
  return text + decoder.decode(bytes.subarray(valid));
}

/** The well-formed sequence that starts at `at`, or how many bytes of one that is broken off or wrong. */
function sequenceAt(bytes: Uint8Array, at: number): { length: number; complete: boolean } {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return { length: 1, complete: true };
  if (lead < 0xc2 || lead > 0xf4) return { length: 1, complete: false };
  const wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  let length = 1;
  while (length < wanted && follows(lead, length, bytes[at + length])) length += 1;
  return { length, complete: length === wanted };
}

function follows(lead: number, place: number, byte: number | undefined): boolean {
  if (byte === undefined || byte < 0x80 || byte > 0xbf) return false;
  if (place > 1) return true;
  if (lead === 0xe0) return byte >= 0xa0;
  if (lead === 0xed) return byte <= 0x9f;
  if (lead === 0xf0) return byte >= 0x90;
  return lead !== 0xf4 || byte <= 0x8f;
}
