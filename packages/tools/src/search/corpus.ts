/** Documents with their index. Words of the title count twice: a document is first of all about what it is called. */
import { z } from "zod";
import { Bm25Builder, type Bm25Index } from "./bm25-index.ts";

export const CorpusDocument = z.object({
  id: z.union([z.string(), z.number()]).transform(String),
  title: z.string().optional(),
  text: z.string(),
});
export type CorpusDocument = z.infer<typeof CorpusDocument>;

export interface Corpus {
  readonly documents: readonly CorpusDocument[];
  readonly index: Bm25Index;
}

export class CorpusBuilder {
  readonly #documents: CorpusDocument[] = [];
  readonly #index = new Bm25Builder();

  get size(): number {
    return this.#documents.length;
  }

  add(document: CorpusDocument): void {
    this.#documents.push(document);
    this.#index.add(
      document.title === undefined ? document.text : `${document.title}\n${document.title}\n${document.text}`,
    );
  }

  done(): Corpus {
    return { documents: this.#documents, index: this.#index.done() };
  }
}

export function corpusOf(documents: readonly CorpusDocument[]): Corpus {
  const builder = new CorpusBuilder();
  for (const document of documents) builder.add(document);
  return builder.done();
}
