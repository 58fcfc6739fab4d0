export function encodeTokens(_tokens: readonly number[]): Buffer {
  throw new Error("under construction");
}
export function decodeTokens(_bytes: Uint8Array): number[] {
  throw new Error("under construction");
}
/** Float32 little-endian; null = missing, stored as NaN. */
export function encodeLogprobs(_logprobs: readonly (number | null)[]): Buffer {
  throw new Error("under construction");
}
export function decodeLogprobs(_bytes: Uint8Array): (number | null)[] {
  throw new Error("under construction");
}
