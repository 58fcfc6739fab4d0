/** A path as a diff writes it. Pure. */

/**
 * Quoted like a C string where it has anything but plain characters; a time may follow after a tab; `/dev/null` is no path.
 * @param prefix git's `a/` or `b/`, taken off where it is there
 */
export function readPath(written: string, prefix: string): string | null {
  const path = written.startsWith('"') ? unquote(written) : (written.split("\t")[0] ?? "").replace(/\r$/u, "");
  if (path === "/dev/null") return null;
  return prefix !== "" && path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/** Bytes in octal make UTF-8; what is none is shown as such. */
function unquote(written: string): string {
  const bytes: number[] = [];
  const source = new TextEncoder().encode(written);
  for (let at = 1; at < source.length; at += 1) {
    const byte = source[at] ?? 0;
    if (byte === 34) break;
    if (byte !== 92) {
      bytes.push(byte);
      continue;
    }
    const octal = /^[0-3][0-7]{2}/u.exec(String.fromCharCode(...source.subarray(at + 1, at + 4)))?.[0];
    if (octal) {
      bytes.push(Number.parseInt(octal, 8));
      at += 3;
    } else {
      const next = source[at + 1] ?? 92;
      bytes.push(escapes[String.fromCharCode(next)] ?? next);
      at += 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
