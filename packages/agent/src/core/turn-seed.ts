/**
 * The sampling seed of a turn: a well-mixed, non-negative 31-bit number that depends only on the rollout's seed and the
 * turn, so a continued rollout samples what an uninterrupted one would have.
 */
export function turnSeed(rolloutSeed: number, turn: number): number {
  return mix(mix(rolloutSeed >>> 0) ^ mix((turn + 0x9e3779b9) >>> 0)) >>> 1;
}

/** A bijection of 32-bit numbers in which every input bit touches every output bit (multiply and shift, twice). */
function mix(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
