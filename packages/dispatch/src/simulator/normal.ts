/** Standard normal numbers that are a function of their key: no order of drawing, so that two policies meet the same luck. */
import { mixHash } from "../mix-hash.ts";

/** Uniform in (0, 1), never an end: the middle of one of 2^32 equal parts. */
export const uniform = (...key: readonly (number | string)[]): number => (mixHash(...key) + 0.5) / 2 ** 32;

/** Box–Muller, its cosine half: two uniforms of the key make one standard normal. */
export const standardNormal = (...key: readonly (number | string)[]): number =>
  Math.sqrt(-2 * Math.log(uniform(...key, "radius"))) * Math.cos(2 * Math.PI * uniform(...key, "angle"));
