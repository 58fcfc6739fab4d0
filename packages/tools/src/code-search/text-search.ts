/** Ranks the parts of a tree by a question's words (BM25F). Pure; tests come after everything else. */
import { codeTerms } from "./code-terms.ts";
import type { EntityRef, IndexedFile } from "./indexed-file.ts";
import type { RepositoryView } from "./repository-view.ts";

/** How fast more of the same word stops to count. */
export const usualSaturation = 2;
/** Words that say nothing about code. */
const idle = new Set(
  (
    "a an the to of in is are be was were on for with as by and or not this that it its from at which when via if have had has do " +
    "does than then each where there these those can could may might should would will been being other some any all no our we you " +
    "they their etc"
  )
    .split(" ")
    .flatMap((word) => codeTerms(word)),
);

export interface TextHit extends EntityRef {
  readonly score: number;
}

export function searchText(
  view: RepositoryView,
  query: string,
  {
    limit,
    accepts = () => true,
    saturation = usualSaturation,
  }: {
    readonly limit: number;
    readonly accepts?: ((ref: EntityRef) => boolean) | undefined;
    readonly saturation?: number;
  },
): TextHit[] {
  const { base } = view;
  const asked = new Map<string, number>();
  for (const term of codeTerms(query)) if (!idle.has(term)) asked.set(term, (asked.get(term) ?? 0) + 1);
  const scores = new Float64Array(base.documents.length);
  const terms: { readonly term: string; readonly value: number }[] = [];
  for (const [term, times] of asked) {
    const postings = base.postings(term);
    const holders = postings?.documents.length ?? 0;
    const rarity = Math.log(1 + (base.documents.length - holders + 0.5) / (holders + 0.5));
    const value = rarity * Math.sqrt(times);
    terms.push({ term, value });
    if (postings === undefined) continue;
    const { documents, weights } = postings;
    for (let i = 0; i < documents.length; i++) {
      const weight = weights[i] ?? 0;
      const document = documents[i] ?? 0;
      scores[document] = (scores[document] ?? 0) + (value * weight) / (saturation + weight);
    }
  }
  const hits: TextHit[] = [];
  for (const [place, ref] of base.documents.entries()) {
    const score = scores[place] ?? 0;
    if (score > 0 && view.holds(ref.file) && accepts(ref)) hits.push({ ...ref, score });
  }
  for (const file of view.ownFiles()) hits.push(...scoreFile(file, terms, saturation, accepts));
  return hits.sort((a, b) => Number(a.file.test) - Number(b.file.test) || b.score - a.score).slice(0, limit);
}

function scoreFile(
  file: IndexedFile,
  terms: readonly { readonly term: string; readonly value: number }[],
  saturation: number,
  accepts: (ref: EntityRef) => boolean,
): TextHit[] {
  const values = new Map<number, number>();
  for (const { term, value } of terms) {
    const place = file.terms.vocabulary.indexOf(term);
    if (place !== -1) values.set(place, value);
  }
  return file.terms.documents.flatMap((document): TextHit[] => {
    let score = 0;
    for (const [i, term] of document.terms.entries()) {
      const value = values.get(term);
      const weight = document.weights[i] ?? 0;
      if (value !== undefined) score += (value * weight) / (saturation + weight);
    }
    const ref = { file, place: document.place };
    return score > 0 && accepts(ref) ? [{ ...ref, score }] : [];
  });
}
