/** The log that a worker's keeper writes: `log`, and what was in it before it was too long, `log.1`. Whole lines alone are read. */
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isMissing } from "./placement-folder.ts";

const pollMs = 250;

/** Up to where a log was read. */
interface Place {
  /** Of the file that it is in. */
  readonly inode: number | null;
  readonly offset: number;
}
interface Read {
  readonly lines: readonly string[];
  readonly place: Place;
}
const beginning: Place = { inode: null, offset: 0 };

/** Its last lines. */
export async function logEnd(folder: string, lines: number): Promise<string[]> {
  const file = path.join(folder, "log");
  const [older, newer] = [await readFrom(`${file}.1`, beginning), await readFrom(file, beginning)];
  return lines === 0 ? [] : [...older.lines, ...newer.lines].slice(-lines);
}

/** Lines as they come, until nobody writes any more. @param tail lines of before @param runs whether somebody still writes */
export async function* followLog(
  folder: string,
  tail: number,
  runs: () => Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const file = path.join(folder, "log");
  const older = await readFrom(`${file}.1`, beginning);
  let read = await readFrom(file, beginning);
  yield* tail === 0 ? [] : [...older.lines, ...read.lines].slice(-tail);
  while (!signal.aborted) {
    // In this order: what was written before the end is read.
    const more = await runs();
    read = await readOn(file, read.place);
    yield* read.lines;
    if (!more) return;
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

/** From a place on, into the next file where there is one by now. */
async function readOn(file: string, place: Place): Promise<Read> {
  const here = await readFrom(file, place);
  if (place.inode === null || here.place.inode === place.inode) return here;
  const older = await readFrom(`${file}.1`, place);
  // One that was moved away while it was read in is gone with what nobody has read of it: logs are bounded.
  const rest = older.place.inode === place.inode ? older.lines : [];
  const newer = await readFrom(file, beginning);
  return { lines: [...rest, ...newer.lines], place: newer.place };
}

/** Nothing of another file than that of the place. */
async function readFrom(file: string, place: Place): Promise<Read> {
  const handle = await openThere(file);
  if (handle === null) return { lines: [], place };
  try {
    const { ino, size } = await handle.stat();
    if (place.inode !== null && ino !== place.inode) return { lines: [], place: { inode: ino, offset: 0 } };
    const bytes = Buffer.alloc(Math.max(0, size - place.offset));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, place.offset);
    const whole = bytes.subarray(0, bytesRead).lastIndexOf(10) + 1;
    const lines = bytes.toString("utf8", 0, whole).split("\n").slice(0, -1);
    return { lines, place: { inode: ino, offset: place.offset + whole } };
  } finally {
    await handle.close();
  }
}

async function openThere(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, "r");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
