/** Seeded numbers for generated instances: the same seed gives the same numbers in every process. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [low, high], both included. */
  integer(low: number, high: number): number;
  /** A new array in random order. */
  shuffled<T>(items: readonly T[]): T[];
}

/** A mulberry32 generator. @param seed any text; equal texts give equal sequences */
export function seededRandom(seed: string): Random {
  let state = hashText(seed);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  const shuffled = <T>(items: readonly T[]): T[] => {
    const rest = [...items];
    return items.flatMap(() => rest.splice(integer(0, rest.length - 1), 1));
  };
  return { next, integer, shuffled };
}

/** 32 well-mixed bits of a text (FNV-1a and a final avalanche). @returns an unsigned integer */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
