/** A source file with all that searches over it need. Made once for a content and shared by every repository that has it. */
import { type FileTerms, fileTerms } from "./file-terms.ts";
import { languageOf } from "./languages/registry.ts";
import { parseSource } from "./parse-source.ts";
import { isTestPath, type SourceFile } from "./source-file.ts";

export interface IndexedFile {
  readonly source: SourceFile;
  readonly terms: FileTerms;
  readonly test: boolean;
  /** The text in lower case. */
  readonly lower: string;
  /** Memory it takes, roughly. */
  readonly bytes: number;
}

/** An entity of a file, or the file itself where `place` is -1. */
export interface EntityRef {
  readonly file: IndexedFile;
  readonly place: number;
}

/** Null: no source file, or a binary by that name. */
export async function indexFile(path: string, bytes: Uint8Array): Promise<IndexedFile | null> {
  const language = languageOf(path);
  if (language === undefined || bytes.includes(0)) return null;
  const text = new TextDecoder("utf-8").decode(bytes).replaceAll("\r\n", "\n");
  const source = await parseSource(path, language, text);
  const terms = fileTerms(source);
  const weights = terms.documents.reduce((sum, { terms: places }) => sum + places.length, 0);
  return {
    source,
    terms,
    test: isTestPath(path),
    lower: text.toLowerCase(),
    bytes: text.length * 2 + weights * 8 + terms.vocabulary.length * 40 + source.entities.length * 600,
  };
}

export const refId = ({ file, place }: EntityRef): string => {
  const entity = file.source.entities[place];
  return entity === undefined ? file.source.path : `${file.source.path}:${entity.name}`;
};
