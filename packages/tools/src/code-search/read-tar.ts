/** Regular files of a tar archive, with GNU and POSIX long names. Anything else in it is passed over; a broken archive ends early. */
export interface TarFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const block = 512;

export function* readTar(tar: Uint8Array): Generator<TarFile> {
  const archive = Buffer.from(tar.buffer, tar.byteOffset, tar.byteLength);
  let longName: string | null = null;
  for (let at = 0; at + block <= archive.length; ) {
    const header = archive.subarray(at, at + block);
    const size = sizeIn(header);
    if (header[0] === 0 || size === null) return;
    const bytes = archive.subarray(at + block, at + block + size);
    if (bytes.length < size) return;
    at += block + Math.ceil(size / block) * block;
    const type = String.fromCharCode(header[156] ?? 0);
    if (type === "L") longName = text(bytes);
    else if (type === "x") longName = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(bytes.toString("utf8"))?.[1] ?? longName;
    else {
      const path = longName ?? nameIn(header);
      longName = null;
      if (type === "0" || type === "\0") yield { path: path.replace(/^\.\//, ""), bytes };
    }
  }
}

const text = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? bytes.length : end);
};

function nameIn(header: Buffer): string {
  const name = text(header.subarray(0, 100));
  const isPosix = header.toString("latin1", 257, 263) === "ustar\0";
  const prefix = isPosix ? text(header.subarray(345, 500)) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** Octal, or binary where the first bit is set. */
function sizeIn(header: Buffer): number | null {
  if (((header[124] ?? 0) & 0x80) !== 0) return header.readUIntBE(130, 6);
  const size = Number.parseInt(text(header.subarray(124, 136)).trim(), 8);
  return Number.isNaN(size) ? null : size;
}
