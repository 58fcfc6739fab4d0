/**
 * A corpus file: one JSON object {id, title?, text} a line, in UTF-8; `contents` may stand for title and text,
 * as in the dumps of retrieval benchmarks ("title", a line break, text). Invariant: a line that does not fit is an error that names it,
 * never skipped; a file beyond the limits is refused before it is held.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { type Corpus, CorpusBuilder, CorpusDocument } from "./corpus.ts";

export interface CorpusLimits {
  /** Of the whole file. */
  readonly bytes: number;
  readonly documents: number;
}
/** Text and index are held in memory, about five times the file, after some 20 s of CPU; what is larger belongs into a search server. */
export const corpusLimits: CorpusLimits = { bytes: 128 * 1024 * 1024, documents: 1_000_000 };

const ContentsLine = z
  .object({ id: z.union([z.string(), z.number()]).transform(String), contents: z.string() })
  .transform(({ id, contents }): CorpusDocument => {
    const end = contents.indexOf("\n");
    if (end === -1) return { id, text: contents };
    return { id, title: contents.slice(0, end).replace(/^"(.*)"$/s, "$1"), text: contents.slice(end + 1) };
  });
const Line = z.union([CorpusDocument, ContentsLine]);

/** @throws InputError at `options.corpus`: beyond a limit, or the first line that does not fit, counted from 1 */
export async function readCorpusFile(path: string, limits: CorpusLimits = corpusLimits): Promise<Corpus> {
  const builder = new CorpusBuilder();
  for await (const document of documentsOf(path, limits)) builder.add(document);
  return builder.done();
}

/** Reads all of it and keeps nothing. @returns the number of documents @throws as `readCorpusFile` */
export async function checkCorpusFile(path: string, limits: CorpusLimits = corpusLimits): Promise<number> {
  let count = 0;
  for await (const _document of documentsOf(path, limits)) count += 1;
  return count;
}

async function* documentsOf(path: string, limits: CorpusLimits): AsyncGenerator<CorpusDocument> {
  const name = basename(path);
  const { size } = await stat(path);
  if (size > limits.bytes) throw bad(`${name} has ${size} bytes; at most ${limits.bytes} can be searched here`);
  let count = 0;
  let number = 0;
  for await (const line of linesOf(path)) {
    number += 1;
    if (line.trim() === "") continue;
    count += 1;
    if (count > limits.documents) throw bad(`${name} has more than ${limits.documents} documents`);
    yield documentOf(line, `${name} line ${number}`);
  }
  if (count === 0) throw bad(`${name} has no documents`);
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (chunk: Uint8Array, stream: boolean): string => {
    try {
      return decoder.decode(chunk, { stream });
    } catch (cause) {
      throw bad(`${basename(path)} is not UTF-8: ${String(cause).slice(0, 80)}`);
    }
  };
  let parts: string[] = [];
  // Other work of the process goes on between chunks, however large the corpus is.
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 })) {
    const [head = "", ...lines] = decode(chunk, true).split("\n");
    parts.push(head);
    if (lines.length === 0) continue;
    yield parts.join("");
    parts = [lines.pop() ?? ""];
    yield* lines;
  }
  parts.push(decode(new Uint8Array(), false));
  yield parts.join("");
}

function documentOf(line: string, where: string): CorpusDocument {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch (cause) {
    throw bad(`${where}: not JSON (${String(cause).slice(0, 120)})`);
  }
  const parsed = Line.safeParse(json);
  if (!parsed.success) throw bad(`${where}: not {id, title?, text} nor {id, contents}`);
  return parsed.data;
}

const bad = (message: string): InputError => new InputError([{ path: "options.corpus", message }]);
