/**
 * What a file's parts are found by in words: a document for each function, each class without its methods and the file without
 * both. A term's weight in a document sums over its fields, each measured against the length such a field usually has (BM25F), so
 * that a document's weights never change with what else is indexed.
 */
import { countTerms } from "./code-terms.ts";
import type { SourceFile } from "./source-file.ts";

export interface TermDocument {
  /** Place of the entity in its file; -1 = the file. */
  readonly place: number;
  /** Places in the vocabulary. */
  readonly terms: Uint32Array;
  readonly weights: Float32Array;
}
export interface FileTerms {
  readonly vocabulary: readonly string[];
  readonly documents: readonly TermDocument[];
}

interface Field {
  readonly weight: number;
  /** Share of the weight that goes with the length. */
  readonly byLength: number;
  /** Terms that such a field has on average. */
  readonly usualTerms: number;
}
/** What a word counts in each field of a document. */
export const usualFields = {
  name: { weight: 3, byLength: 0.3, usualTerms: 3 },
  owner: { weight: 2.5, byLength: 0.3, usualTerms: 3 },
  path: { weight: 1, byLength: 0.3, usualTerms: 9 },
  signature: { weight: 1, byLength: 0.5, usualTerms: 9 },
  text: { weight: 1, byLength: 0.75, usualTerms: 75 },
} satisfies Record<string, Field>;
type FieldName = keyof typeof usualFields;
type Fields = Readonly<Record<FieldName, Field>>;
const fieldNames = ["name", "owner", "path", "signature", "text"] as const satisfies readonly FieldName[];

/** Parts of a file that are longer are data; their beginning says what they are. */
const maxTextCharacters = 100_000;

export function fileTerms(file: SourceFile, fields: Fields = usualFields): FileTerms {
  const places = new Map<string, number>();
  const placeOf = (term: string): number => {
    const known = places.get(term);
    if (known !== undefined) return known;
    places.set(term, places.size);
    return places.size - 1;
  };
  const document = (
    place: number,
    parts: Readonly<Partial<Record<FieldName, ReadonlyMap<string, number>>>>,
  ): TermDocument => {
    const weights = new Map<number, number>();
    for (const name of fieldNames) {
      const counts = parts[name];
      if (counts === undefined) continue;
      let length = 0;
      for (const times of counts.values()) length += times;
      const { weight, byLength, usualTerms } = fields[name];
      const one = weight / (1 - byLength + (byLength * length) / usualTerms);
      for (const [term, times] of counts) {
        const at = placeOf(term);
        weights.set(at, (weights.get(at) ?? 0) + one * times);
      }
    }
    return { place, terms: Uint32Array.from(weights.keys()), weights: Float32Array.from(weights.values()) };
  };
  const path = countTerms(file.path.replace(/\.[^./]+$/, ""));
  const texts = ownTexts(file);
  const documents = file.entities.map((entity, place) => {
    const dot = entity.name.lastIndexOf(".");
    return document(place, {
      name: countTerms(entity.name.slice(dot + 1)),
      owner: countTerms(dot === -1 ? "" : entity.name.slice(0, dot)),
      path,
      signature: countTerms(`${entity.signature} ${entity.decorators.join(" ")}`),
      text: countTerms(texts[place] ?? ""),
    });
  });
  const whole = document(-1, { path, text: countTerms(texts.at(-1) ?? "") });
  return { vocabulary: [...places.keys()], documents: [...documents, whole] };
}

/** Of each entity the text outside of those in it; the file's own is the last. */
export function ownTexts(file: SourceFile): string[] {
  const texts: string[] = file.entities.map(() => "");
  let own = "";
  const open: number[] = [];
  let at = 0;
  const take = (to: number): void => {
    const text = file.text.slice(at, Math.max(at, to));
    const holder = open.at(-1);
    if (holder === undefined) own += text;
    else texts[holder] += text;
    at = Math.max(at, to);
  };
  const closeBefore = (start: number): void => {
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const end = file.entities[last]?.end ?? 0;
      if (end > start) return;
      take(end);
      open.pop();
    }
  };
  for (const [place, entity] of file.entities.entries()) {
    closeBefore(entity.start);
    take(entity.start);
    open.push(place);
  }
  closeBefore(file.text.length + 1);
  take(file.text.length);
  return [...texts, own].map((text) => text.slice(0, maxTextCharacters));
}
