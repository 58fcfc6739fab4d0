/**
 * A keyed permutation of 0 … size − 1 that needs no memory: a Feistel network over the next power of four, walked until it
 * lands inside. Invariant: for one (size, key) it is a bijection.
 */
import { mixHash } from "./mix-hash.ts";

const rounds = 6;

/**
 * @param index place in the shuffled order, 0 ≤ index < size
 * @param size at most 2^31
 * @throws RangeError outside of these
 */
export function permute(index: number, size: number, key: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= size || size > 2 ** 31) {
    throw new RangeError(`cannot permute ${index} within ${size}`);
  }
  const halfBits = Math.max(1, Math.ceil(Math.log2(Math.max(size, 2)) / 2));
  let image = index;
  do image = feistel(image, halfBits, key);
  while (image >= size);
  return image;
}

function feistel(value: number, halfBits: number, key: number): number {
  const base = 2 ** halfBits;
  let left = Math.floor(value / base);
  let right = value % base;
  for (let round = 0; round < rounds; round++) {
    const next = (left ^ mixHash(key, round, right)) & (base - 1);
    left = right;
    right = next;
  }
  return left * base + right;
}
