/**
 * Source text to its entities, imports and calls, by tree-sitter grammars in WebAssembly. One parser a thread; a tree is freed before
 * the next is made. Text that does not parse gives what could be read of it; what takes too long to read is text alone.
 */
import { createRequire } from "node:module";
import { Language as Grammar, type Node, Parser, Query, type QueryMatch } from "web-tree-sitter";
import type { Language } from "./languages/language.ts";
import { type Entity, type EntityKind, lastName, type SourceFile } from "./source-file.ts";

const require = createRequire(import.meta.url);
let parser: Promise<Parser> | undefined;
const grammars = new Map<string, Promise<Ready>>();
interface Ready {
  readonly grammar: Grammar;
  readonly query: Query;
}

async function newParser(): Promise<Parser> {
  await Parser.init();
  return new Parser();
}

async function load(language: Language): Promise<Ready> {
  const grammar = await Grammar.load(require.resolve(language.grammar));
  return { grammar, query: new Query(grammar, language.query) };
}

const loaded = (language: Language): Promise<Ready> => {
  const known = grammars.get(language.name);
  if (known) return known;
  const fresh = load(language);
  grammars.set(language.name, fresh);
  return fresh;
};

/** For reading one file, and for finding its entities: other rollouts wait for the thread. Real files of a megabyte take a second. */
const maxParseMs = 5000;
/** Levels of the syntax tree below which no entity begins. */
const maxDepth = 500;
/** Parts of text that is no code, in one node: finding entities among them takes the square of it. */
const maxBroken = 10_000;

const maxCallLength = 80;
const maxSignature = 400;

export async function parseSource(path: string, language: Language, text: string): Promise<SourceFile> {
  parser ??= newParser();
  // Grammars can be read only after the parser's own module.
  const ready = await parser;
  const { grammar, query } = await loaded(language);
  ready.setLanguage(grammar);
  const reading = new Reading(path, language, text);
  const tree = ready.parse(text, null, { progressCallback: isLate(maxParseMs) });
  if (tree === null) {
    // What it had read is not gone on with.
    ready.reset();
    return reading.read([]);
  }
  try {
    const root = tree.rootNode;
    const options = { maxStartDepth: maxDepth, progressCallback: isLate(maxParseMs) };
    return reading.read(isBroken(root) ? [] : query.matches(root, options));
  } finally {
    tree.delete();
  }
}

function isLate(limitMs: number): () => boolean {
  const endMs = performance.now() + limitMs;
  return () => performance.now() > endMs;
}

/** Whether most of it is no code of the language. */
const isBroken = (root: Node): boolean =>
  root.hasError &&
  (root.childCount > maxBroken || root.children.some((child) => child?.isError && child.childCount > maxBroken));

/** An entity or scope while its file is read. */
interface Draft {
  readonly kind: EntityKind | "scope";
  readonly nameNode: string;
  readonly owner: string;
  start: number;
  readonly end: number;
  /** Where the definition itself begins, behind decorators. */
  readonly from: number;
  readonly bodyStart: number;
  readonly bases: string[];
  readonly calls: Set<string>;
}

class Reading {
  readonly #path: string;
  readonly #language: Language;
  readonly #text: string;
  readonly #lineStarts: number[];

  constructor(path: string, language: Language, text: string) {
    this.#path = path;
    this.#language = language;
    this.#text = text;
    this.#lineStarts = lineStartsOf(text);
  }

  read(matches: readonly QueryMatch[]): SourceFile {
    const drafts: Draft[] = [];
    const wholes = new Map<number, number[]>();
    const bases: [number, string][] = [];
    const calls: [number, string][] = [];
    const imports: string[] = [];
    for (const { captures } of matches) {
      const [first] = captures;
      if (first === undefined) continue;
      const { name, node } = first;
      if (name === "call") calls.push([node.startIndex, this.#calleeText(node)]);
      else if (name === "base") bases.push([node.startIndex, this.#slice(node.startIndex, node.endIndex)]);
      else if (name === "import") imports.push(this.#slice(node.startIndex, node.endIndex));
      else if (name === "whole") wholes.set(node.endIndex, [...(wholes.get(node.endIndex) ?? []), node.startIndex]);
      else drafts.push(this.#draft(captures));
    }
    drafts.sort((a, b) => a.start - b.start || b.end - a.end);
    for (const [place, draft] of drafts.entries()) {
      // Parts that end alike (a class with its last method) each have their own beginning: behind the definition before.
      const before = drafts[place - 1]?.from ?? -1;
      const starts = wholes.get(draft.end) ?? wholes.get(draft.end + 1) ?? [];
      draft.start = Math.min(draft.from, ...starts.filter((start) => start > before && start < draft.from));
    }
    const owners = ownersOf(drafts);
    for (const [at, base] of bases) owners(at)?.bases.push(base);
    const outside = new Set<string>();
    for (const [at, callee] of calls) (owners(at)?.calls ?? outside).add(callee);
    return {
      path: this.#path,
      language: this.#language,
      text: this.#text,
      lines: this.#lineStarts.length,
      entities: this.#entities(drafts),
      imports: imports.flatMap((text) => this.#language.imports(text)),
      calls: [...outside],
    };
  }

  #slice(start: number, end: number): string {
    return this.#text.slice(start, end);
  }

  #calleeText(node: Node): string {
    const text = this.#slice(node.startIndex, node.endIndex);
    if (text.length <= maxCallLength && !text.includes("\n")) return text;
    return /[\w$]+$/.exec(text)?.[0] ?? "";
  }

  #draft(captures: readonly { readonly name: string; readonly node: Node }[]): Draft {
    const part = (suffix: string): Node | undefined => captures.find(({ name }) => name.endsWith(suffix))?.node;
    const whole = captures.find(({ name }) => !name.includes("."));
    if (whole === undefined) throw new Error(`the query of ${this.#language.name} names a part without its whole`);
    const { name, node } = whole;
    const nameNode = part(".name");
    const owner = part(".owner");
    const named = (one: Node | undefined): string => (one ? this.#slice(one.startIndex, one.endIndex) : "");
    const kind = name === "class" || name === "scope" ? name : "function";
    const ownerName = this.#language.ownerName ?? ((text: string) => text);
    return {
      kind,
      nameNode: kind === "scope" ? ownerName(named(nameNode)) : named(nameNode),
      owner: owner ? ownerName(named(owner)) : "",
      start: node.startIndex,
      from: node.startIndex,
      end: node.endIndex,
      bodyStart: part(".body")?.startIndex ?? node.endIndex,
      bases: [],
      calls: new Set(),
    };
  }

  #entities(drafts: readonly Draft[]): Entity[] {
    const entities: Entity[] = [];
    const open: { readonly draft: Draft; readonly name: string; readonly place: number }[] = [];
    for (const draft of drafts) {
      while (open.length > 0 && (open.at(-1)?.draft.end ?? 0) <= draft.start) open.pop();
      const around = open.at(-1);
      const names = [around?.name, draft.owner, draft.nameNode].filter((one) => one !== undefined && one !== "");
      const name = names.join(".");
      const parent = open.findLast(({ place }) => place >= 0)?.place ?? -1;
      if (draft.kind === "scope") open.push({ draft, name, place: -1 });
      else {
        open.push({ draft, name, place: entities.length });
        entities.push(this.#entity(draft, draft.kind, name, parent));
      }
    }
    return entities;
  }

  #entity(draft: Draft, kind: EntityKind, name: string, parent: number): Entity {
    const { start, end, from, bodyStart, bases, calls } = draft;
    const body = this.#slice(bodyStart, Math.min(end, bodyStart + 2000));
    const signature = this.#slice(from, Math.min(bodyStart, from + 2000))
      .replace(/\s+/g, " ")
      .trim();
    const decorators = this.#slice(start, from)
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line.startsWith("@"));
    return {
      kind,
      name,
      startLine: this.#lineOf(start),
      endLine: this.#lineOf(Math.max(start, end - 1)),
      bodyLine: bodyStart < end ? this.#lineOf(bodyStart) : this.#lineOf(Math.max(start, end - 1)) + 1,
      start,
      end,
      signature: signature.replace(/[{:]$/, "").trim().slice(0, maxSignature),
      decorators,
      doc: this.#language.doc(body, this.#commentAbove(start)),
      parent,
      bases,
      calls: [...calls].filter((callee) => callee !== "" && lastName(callee) !== ""),
    };
  }

  #lineOf(place: number): number {
    let low = 0;
    let high = this.#lineStarts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Lines of comment that end right before that place. */
  #commentAbove(start: number): string {
    const lines: string[] = [];
    for (let line = this.#lineOf(start) - 1; line >= 1 && lines.length < 40; line--) {
      const text = this.#text.slice(this.#lineStarts[line - 1], (this.#lineStarts[line] ?? start) - 1);
      // Attributes stand between a comment and its item.
      if (/^\s*#\[/.test(text)) continue;
      if (!/^\s*(\/\/|\/\*|\*|#)/.test(text)) break;
      lines.unshift(text);
    }
    return lines.join("\n");
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  if (starts.length > 1 && starts.at(-1) === text.length) starts.pop();
  return starts;
}

/** Finds the innermost entity around a place. */
function ownersOf(drafts: readonly Draft[]): (at: number) => Draft | undefined {
  const entities = drafts.filter(({ kind }) => kind !== "scope");
  return (at) => {
    let low = 0;
    let high = entities.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entities[middle]?.start ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    for (let place = low - 1, steps = 0; place >= 0 && steps < 10_000; place--, steps++) {
      const entity = entities[place];
      if (entity !== undefined && entity.end > at) return entity;
    }
    return undefined;
  };
}
