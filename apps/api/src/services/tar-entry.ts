/** One file as an entry of a tar archive (POSIX ustar): its header and its content, padded to whole blocks. Pure. */
const block = 512;

/** @param name ASCII, at most 100 characters */
export function tarEntry(name: string, content: string): Buffer {
  if (!/^[\x21-\x7e]{1,100}$/u.test(name)) throw new Error(`no name of a tar entry: ${name}`);
  const bytes = Buffer.from(content);
  const padded = Math.ceil(bytes.length / block) * block;
  const entry = Buffer.alloc(block + padded);
  const put = (at: number, text: string) => entry.write(text, at, "latin1");
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  put(0, name);
  put(100, octal(0o644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes.length, 11));
  put(136, octal(0, 11));
  put(156, "0");
  put(257, "ustar\0" + "00");
  // The sum is taken with blanks in its own place.
  entry.fill(" ", 148, 156);
  const sum = entry.subarray(0, block).reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  bytes.copy(entry, block);
  return entry;
}
