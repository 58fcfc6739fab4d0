/** The log of a Ray job. Ray answers with all of it as one JSON string; a run of days prints more than a process should hold. */
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { readTail } from "./ask-http.ts";

const Logs = z.object({ logs: z.string() });
/** With what stands before its backslashes: of those at the very beginning nobody knows how many were cut off. */
const newline = /(?<=[^\\])(?:\\\\)*\\n/;

/** The end of it, whole lines where it was cut. @throws Error for what is not such an answer */
export async function readLog(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const { text, cut } = await readTail(answer, maxBytes);
  if (!cut) return Logs.parse(JSON.parse(text)).logs;
  // From the first line that begins in what was kept to the string's closing quote. Ray escapes all but ASCII.
  const begin = newline.exec(text);
  const from = begin === null ? 0 : begin.index + begin[0].length;
  return z.string().parse(JSON.parse(`"${text.slice(from, text.lastIndexOf('"'))}"`));
}
