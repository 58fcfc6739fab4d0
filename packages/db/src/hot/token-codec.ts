/**
 * Token storage. Ids: first byte = bits per token (0–32), the rest the ids packed little-endian, low bits first; a vocabulary of 2^20
 * takes at most 2.5 bytes a token (plus the first byte). The count is stored beside it (`segments.length`), because the
 * padding of the last byte could hold more ids. Logprobs: float32 little-endian, NaN = missing.
 */

/** @param tokens ids in [0, 2^32) @throws RangeError */
export function encodeTokens(tokens: readonly number[]): Buffer {
  let highest = 0;
  for (const token of tokens) {
    if (!Number.isInteger(token) || token < 0 || token > 0xffff_ffff) throw new RangeError(`not a token id: ${token}`);
    if (token > highest) highest = token;
  }
  const width = 32 - Math.clz32(highest);
  const bytes = Buffer.alloc(1 + Math.ceil((width * tokens.length) / 8));
  bytes[0] = width;
  if (width <= narrow) packNarrow(tokens, width, bytes);
  else packWide(tokens, width, bytes);
  return bytes;
}

/** Up to this width an id and the bits left of the one before fit 31 bits, so integer operations do. */
const narrow = 24;

function packNarrow(tokens: readonly number[], width: number, bytes: Buffer): void {
  let place = 1;
  let held = 0;
  let bits = 0;
  for (const token of tokens) {
    held |= token << bits;
    bits += width;
    while (bits >= 8) {
      bytes[place++] = held;
      held >>>= 8;
      bits -= 8;
    }
  }
  if (bits > 0) bytes[place] = held;
}

function packWide(tokens: readonly number[], width: number, bytes: Buffer): void {
  let place = 1;
  let held = 0;
  let bits = 0;
  for (const token of tokens) {
    // `held` has under 8 bits, so it stays below 2^40: exact as a double.
    held += token * 2 ** bits;
    bits += width;
    while (bits >= 8) {
      bytes[place++] = held % 256;
      held = Math.floor(held / 256);
      bits -= 8;
    }
  }
  if (bits > 0) bytes[place] = held;
}

/** @param length ids to read @throws RangeError when the bytes hold fewer */
export function decodeTokens(bytes: Uint8Array, length: number): number[] {
  const width = bytes[0] ?? 0;
  if (width > 32 || bytes.length < 1 + Math.ceil((width * length) / 8)) {
    throw new RangeError(`${bytes.length} bytes of width ${width} do not hold ${length} tokens`);
  }
  const tokens = new Array<number>(length);
  const modulus = 2 ** width;
  let place = 1;
  let held = 0;
  let bits = 0;
  for (let index = 0; index < length; index++) {
    while (bits < width) {
      held += (bytes[place++] ?? 0) * 2 ** bits;
      bits += 8;
    }
    tokens[index] = held % modulus;
    held = Math.floor(held / modulus);
    bits -= width;
  }
  return tokens;
}

/** Float32 little-endian; null = missing, stored as NaN. */
export function encodeLogprobs(logprobs: readonly (number | null)[]): Buffer {
  const bytes = Buffer.allocUnsafe(logprobs.length * 4);
  for (let index = 0; index < logprobs.length; index++) bytes.writeFloatLE(logprobs[index] ?? Number.NaN, index * 4);
  return bytes;
}

export function decodeLogprobs(bytes: Uint8Array): (number | null)[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength >> 2 }, (_, index) => {
    const value = view.getFloat32(index * 4, true);
    return Number.isNaN(value) ? null : value;
  });
}
