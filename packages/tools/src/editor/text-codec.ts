/**
 * Bytes of a file as text, and back. Invariant: what was decoded encodes to the same bytes, whatever they were; what is no text is
 * refused rather than guessed at.
 */
import { hasHalfPair } from "../has-half-pair.ts";

export const encodings = ["utf-8", "utf-8-bom", "utf-16le", "utf-16be", "latin-1"] as const;
export type Encoding = (typeof encodings)[number];

export interface DecodedText {
  readonly encoding: Encoding;
  /** Without the byte order mark. */
  readonly text: string;
}

/** Characters of text files below U+0020; others speak for a binary. */
const textControls = new Set([0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b]);

/** Null: a binary file. */
export function decodeText(bytes: Uint8Array): DecodedText | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (startsWith(buffer, [0xff, 0xfe])) return utf16(buffer, "utf-16le");
  if (startsWith(buffer, [0xfe, 0xff])) return utf16(buffer, "utf-16be");
  if (buffer.includes(0)) return null;
  const marked = startsWith(buffer, [0xef, 0xbb, 0xbf]);
  const utf8 = strictly("utf-8", marked ? buffer.subarray(3) : buffer);
  if (utf8 !== null) return { encoding: marked ? "utf-8-bom" : "utf-8", text: utf8 };
  if (buffer.some((byte) => byte < 0x20 && !textControls.has(byte))) return null;
  return { encoding: "latin-1", text: buffer.toString("latin1") };
}

/** Null: the encoding has no bytes for one of the characters; half of a surrogate pair is none in any. */
export function encodeText({ encoding, text }: DecodedText): Uint8Array | null {
  if (hasHalfPair(text)) return null;
  switch (encoding) {
    case "utf-8":
      return Buffer.from(text, "utf8");
    case "utf-8-bom":
      return Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), Buffer.from(text, "utf8")]);
    case "utf-16le":
      return Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(text, "utf16le")]);
    case "utf-16be":
      return Buffer.concat([Buffer.of(0xfe, 0xff), Buffer.from(text, "utf16le").swap16()]);
    case "latin-1": {
      const bytes = Buffer.from(text, "latin1");
      return bytes.toString("latin1") === text ? bytes : null;
    }
  }
}

const startsWith = (buffer: Buffer, mark: readonly number[]): boolean =>
  mark.every((byte, place) => buffer[place] === byte);

function strictly(label: string, bytes: Uint8Array): string | null {
  try {
    return new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // A TypeError: these bytes are not in that encoding, which is the answer.
    return null;
  }
}

function utf16(buffer: Buffer, encoding: "utf-16le" | "utf-16be"): DecodedText | null {
  const text = strictly(encoding, buffer.subarray(2));
  return text === null || text.includes("\0") ? null : { encoding, text };
}
