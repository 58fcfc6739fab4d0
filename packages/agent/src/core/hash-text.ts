/**
 * 53 bits that stand for a text, so that comparing long texts later needs no copy of them. Two FNV-1a lanes, one over the
 * text and one over the text with each unit's place mixed in. Not for secrets.
 */
export function hashText(text: string): number {
  const prime = 0x01000193;
  let low = 0x811c9dc5;
  let high = text.length;
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place);
    low = Math.imul(low ^ unit, prime);
    high = Math.imul(high ^ unit ^ (place << 16) ^ (high >>> 15), prime);
  }
  return ((high ^ (high >>> 11)) & 0x1fffff) * 2 ** 32 + (low >>> 0);
}
