/** A source file as the index keeps it. Immutable: a changed file is a new one. */
import type { Import, Language } from "./languages/language.ts";

export type EntityKind = "class" | "function";

export interface Entity {
  readonly kind: EntityKind;
  /** With what it is in: `Class.method`. */
  readonly name: string;
  /** Lines from 1, decorators and the like among them. */
  readonly startLine: number;
  readonly endLine: number;
  /** Line on which its body begins; behind `endLine` where it has none. */
  readonly bodyLine: number;
  /** Characters of the text. */
  readonly start: number;
  readonly end: number;
  /** In one line, without the body. */
  readonly signature: string;
  readonly decorators: readonly string[];
  /** First line of its documentation, or "". */
  readonly doc: string;
  /** Place in the file's entities; -1 = the file. */
  readonly parent: number;
  /** As they are written. */
  readonly bases: readonly string[];
  /** What it calls itself, as it is written, each once. */
  readonly calls: readonly string[];
}

export interface SourceFile {
  readonly path: string;
  readonly language: Language;
  readonly text: string;
  readonly lines: number;
  /** By place in the text. */
  readonly entities: readonly Entity[];
  readonly imports: readonly Import[];
  /** Outside of all entities. */
  readonly calls: readonly string[];
}

/** `path:Class.method`. */
export const entityId = (file: SourceFile, entity: Entity): string => `${file.path}:${entity.name}`;

export const lastName = (name: string): string => name.slice(name.lastIndexOf(".") + 1);

/** A file that tests the others. */
export const isTestPath = (path: string): boolean =>
  /(^|\/)(tests?|testing|__tests__|spec)\//i.test(path) ||
  /(^|\/)(test_[^/]*|conftest|tests)\.py$/.test(path) ||
  /(_test\.(go|py|rs)|\.(test|spec)\.[cm]?[jt]sx?|Tests?\.java)$/.test(path);

/** Lines from..to, from 1, both included. */
export function linesOf(text: string, from: number, to: number): string[] {
  return text.split("\n").slice(from - 1, to);
}
