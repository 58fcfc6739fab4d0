/**
 * Ids: 26 lower-case Crockford base32 characters, 48 bits of milliseconds followed by 80 random bits, so ids made later sort
 * later and one table's new rows land at the end of its index.
 */
import { randomBytes } from "node:crypto";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * @param now milliseconds since 1970
 * @param random at least 10 bytes
 */
export function newId(now: number = Date.now(), random: Uint8Array = randomBytes(10)): string {
  let time = Math.trunc(now);
  let head = "";
  for (let place = 0; place < 10; place++) {
    head = alphabet.charAt(time % 32) + head;
    time = Math.floor(time / 32);
  }
  let tail = "";
  let bits = 0;
  let held = 0;
  for (const byte of random.subarray(0, 10)) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      tail += alphabet.charAt((held >> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  return head + tail;
}
