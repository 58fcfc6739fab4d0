/**
 * Made-up rows of the memory task's shape, of any length, from any local text: the text's own passages are the documents to
 * read past, and among them lie the facts of a two-hop question that no text in the world answers. Deterministic in the seed.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { type Random, seededRandom } from "../random.ts";

export interface GeneratedRows {
  readonly rows: number;
  /** Length of one row's text, in tokens by `bytesPerToken`. The paper trains on 28,000 and evaluates on 112,000. */
  readonly tokens: number;
  /** Prose has about 4.2 in common vocabularies. */
  readonly bytesPerToken?: number;
  readonly seed: string;
  /** Passages to read past, from `passagesOf` or elsewhere; used over and over where they are few. */
  readonly passages: readonly string[];
}

export interface GeneratedRow {
  readonly question: string;
  readonly documents: readonly string[];
  readonly answers: readonly string[];
}

export const trainTokens = 28_000;
export const evaluateTokens = 112_000;

/** @throws RangeError without passages, or for a length that does not hold the facts */
export function* generateRows({
  rows,
  tokens,
  bytesPerToken = 4.2,
  seed,
  passages,
}: GeneratedRows): Generator<GeneratedRow> {
  if (passages.every((passage) => passage.trim() === "")) throw new RangeError("there are no passages to read past");
  const bytes = Math.floor(tokens * bytesPerToken);
  for (let n = 0; n < rows; n++) yield generateRow(seededRandom(`memory row ${seed} ${n}`), bytes, passages);
}

function generateRow(random: Random, bytes: number, passages: readonly string[]): GeneratedRow {
  const { question, facts, answer } = askAbout(random);
  const distractors = Array.from({ length: 6 }, () => askAbout(random).facts)
    .flat()
    .filter((fact) => !facts.some((own) => sharesSubject(own, fact)));
  const needles = [...facts, ...distractors];
  const room = bytes - sizeOf(needles);
  if (room < 0) throw new RangeError(`${bytes} bytes do not hold the facts of a question`);
  const filler: string[] = [];
  let blank = 0;
  for (let at = random.integer(0, passages.length - 1), left = room; left > documentHeadBytes; at++) {
    const passage = cut(passages[at % passages.length] ?? "", left - documentHeadBytes);
    // Where not even one character fits any more, no passage will.
    if (passage.trim() === "") {
      if (++blank >= passages.length) break;
      continue;
    }
    blank = 0;
    filler.push(passage);
    left -= documentHeadBytes + Buffer.byteLength(passage);
  }
  return { question, documents: mixed(random, filler, needles), answers: [answer] };
}

/** "Document 1234:\n" and the blank line between. */
const documentHeadBytes = 18;
const sizeOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + documentHeadBytes + Buffer.byteLength(text), 0);

/** The needles at random places, filler in its order: neighbours in a text stay neighbours. */
function mixed(random: Random, filler: readonly string[], needles: readonly string[]): string[] {
  const places = needles.map((needle) => ({ needle, before: random.integer(0, filler.length) }));
  return [...filler, ""].flatMap((passage, at) => [
    ...places.filter(({ before }) => before === at).map(({ needle }) => needle),
    ...(passage === "" ? [] : [passage]),
  ]);
}

const works = [
  "chapel organ",
  "harbour clock",
  "glass garden",
  "tin observatory",
  "salt archive",
  "night ferry",
  "paper mill",
];
const towns = ["Ardmoor", "Belquist", "Corvane", "Dunwell", "Estrel", "Farrowby", "Galdenport", "Hexley", "Ivarsund"];
const first = ["Odile", "Matthis", "Runa", "Casper", "Ilse", "Tomas", "Brigid", "Yusuf", "Anneke", "Leander"];
const last = ["Vantreight", "Okonedo", "Harcastle", "Lindqvist", "Abernale", "Sorrento", "Whitlock", "Ferreira"];

/** Two hops: who made the work, and what that person kept locked with. */
function askAbout(random: Random): { question: string; facts: [string, string]; answer: string } {
  const pick = (names: readonly string[]): string => names[random.integer(0, names.length - 1)] ?? "";
  const work = `${pick(works)} of ${pick(towns)}`;
  const maker = `${pick(first)} ${pick(last)}`;
  const answer = String(random.integer(100_000, 999_999));
  return {
    question: `Which number opened the locker of the person who built the ${work}?`,
    facts: [
      `The ${work} was built by ${maker}, who never spoke of it again.`,
      `For as long as anyone could remember, the locker of ${maker} was opened by the number ${answer}.`,
    ],
    answer,
  };
}

/** Facts about one work or one person would contradict each other. */
const sharesSubject = (one: string, other: string): boolean =>
  [...namesIn(one)].some((name) => namesIn(other).has(name));
const namesIn = (fact: string): Set<string> =>
  new Set(fact.match(/\p{Lu}\p{L}+ \p{Lu}\p{L}+|[a-z]+ [a-z]+ of \p{Lu}\p{L}+/gu) ?? []);

function cut(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  let kept = Buffer.from(text).subarray(0, maxBytes).toString("utf8");
  while (Buffer.byteLength(kept) > maxBytes || kept.endsWith("\uFFFD")) kept = kept.slice(0, -1);
  return kept;
}

/** Passages of a text file: its paragraphs, of at least 200 and at most 2,000 characters, until `maxBytes` are read. */
export async function passagesOf(path: string, maxBytes = 8_000_000): Promise<string[]> {
  let text = "";
  for await (const chunk of createReadStream(path, { encoding: "utf8", end: maxBytes - 1 })) text += chunk;
  const paragraphs = text.split(/\n\s*\n/u).map((paragraph) => paragraph.trim());
  const passages: string[] = [];
  let held = "";
  for (const paragraph of paragraphs.flatMap((long) => long.match(/[\s\S]{1,2000}(?!\S)|\S{1,2000}/gu) ?? [])) {
    held = held === "" ? paragraph.trim() : `${held}\n\n${paragraph.trim()}`;
    if (held.length < 200) continue;
    passages.push(held);
    held = "";
  }
  return held === "" ? passages : [...passages, held];
}

/** Writes them as JSONL; an earlier file of that name is replaced. */
export async function writeRows(path: string, rows: Iterable<GeneratedRow>): Promise<void> {
  const file = await open(path, "w");
  try {
    for (const row of rows) await file.write(`${JSON.stringify(row)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}
