/**
 * Structural patterns (`foo($$$ARGS)`) over source files, by ast-grep. A file is parsed only if it holds the pattern's literal words;
 * between batches the event loop runs, or nothing of the parsed trees would be given back. For a thread of its own.
 */
import { createRequire } from "node:module";
import { Lang, parse, registerDynamicLanguage } from "@ast-grep/napi";
import type { IndexedFile } from "./indexed-file.ts";

const require = createRequire(import.meta.url);
const batchFiles = 25;

export interface PatternHit {
  readonly file: IndexedFile;
  /** From 1. */
  readonly line: number;
  readonly endLine: number;
}
export interface PatternAnswer {
  readonly hits: readonly PatternHit[];
  /** There may be more. */
  readonly cut: boolean;
  /** The first complaint of a language that can't read the pattern, when none found anything. */
  readonly trouble: string | null;
}

let registered = false;

/** Grammars that are not built in; once a thread. */
function register(): void {
  if (registered) return;
  const names = ["python", "go", "rust", "java"];
  registerDynamicLanguage(Object.fromEntries(names.map((name) => [name, require(`@ast-grep/lang-${name}`)])));
  registered = true;
}

export async function findPattern(
  files: readonly IndexedFile[],
  pattern: string,
  { limit, isStopped = () => false }: { readonly limit: number; readonly isStopped?: () => boolean },
): Promise<PatternAnswer> {
  register();
  const words = literalWords(pattern);
  const candidates = files.filter(({ source }) => words.every((word) => holdsWord(source.text, word)));
  const hits: PatternHit[] = [];
  const unreadable = new Map<string, string>();
  let inBatch = 0;
  for (const file of candidates) {
    const language = file.source.language.patterns;
    if (unreadable.has(language)) continue;
    try {
      for (const node of parse(grammar(language), file.source.text).root().findAll({ rule: { pattern } })) {
        const { start, end } = node.range();
        hits.push({ file, line: start.line + 1, endLine: end.line + 1 });
        if (hits.length > limit) break;
      }
    } catch (error) {
      // A pattern is code in one language and may be none in the next.
      unreadable.set(language, error instanceof Error ? error.message : String(error));
    }
    if (hits.length > limit || isStopped()) break;
    inBatch += 1;
    if (inBatch % batchFiles === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const [trouble = null] = hits.length === 0 ? unreadable.values() : [];
  return { hits: hits.slice(0, limit), cut: hits.length > limit, trouble };
}

const grammar = (name: string): Lang | string => Object.values(Lang).find((one) => one === name) ?? name;

/** Names in the pattern that any match holds, too: letters that are no part of a `$META` variable. */
export function literalWords(pattern: string): string[] {
  const bare = pattern.replace(/\$+[A-Z_][A-Z0-9_]*|\$\$\$/g, " ");
  return [...new Set(bare.match(/[\p{L}\p{N}_]{2,}/gu) ?? [])];
}

const nameLetter = /[\p{L}\p{N}_]/u;

/** As a name of its own, not as a part of another. */
function holdsWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const isInside = nameLetter.test(text.charAt(at - 1)) || nameLetter.test(text.charAt(at + word.length));
    if (!isInside) return true;
  }
  return false;
}
