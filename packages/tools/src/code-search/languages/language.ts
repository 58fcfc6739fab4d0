/**
 * What the index must know of a programming language. A query over its syntax tree names the parts:
 *
 * - `@function` and `@class`, with `.name` and `.body` inside: entities. `.owner` inside a function: text that names the type it
 *   belongs to (a Go receiver).
 * - `@scope` with `.name`: puts its name before those inside without being an entity (a Rust `impl`).
 * - `@whole`: takes in what stands before the definition that it ends with (decorators, `export`).
 * - `@base` inside a class: a type it inherits from. `@call`: what is called. `@import`: a whole import.
 */
import { textStart } from "../../text-place.ts";
export interface Language {
  readonly name: string;
  /** With the dot. */
  readonly extensions: readonly string[];
  /** Of its grammar, as a module's path. */
  readonly grammar: string;
  readonly query: string;
  /** How structural patterns name it. */
  readonly patterns: string;
  /** The type in an owner's or scope's text; absent = the text. */
  ownerName?(text: string): string;
  /** What an import's text brings in. */
  imports(text: string): readonly Import[];
  /** Paths, without extension, that a module may be in; "./" and "../" are from the importing file. The likeliest first. */
  modulePaths(module: string): readonly string[];
  /** The documentation of a definition: its first sentence's line. @param above lines of comment just before it */
  doc(body: string, above: string): string;
}

export interface Import {
  /** As it is written: `a.b`, `..c`, `./d`, `com.x.Y`. */
  readonly module: string;
  /** Names that are brought in, as [there, here]; empty = the module itself, under `alias`. */
  readonly names: readonly (readonly [there: string, here: string])[];
  /** The module's own name here. */
  readonly alias: string;
}

/** The first line with words of a comment, without its marks. */
export function commentLine(comment: string): string {
  for (const line of comment.split("\n")) {
    const words = line
      .replace(/^\s*(?:\/\*\*?|\*\/|\*|\/\/[/!]?|#)?\s?/, "")
      .replace(/\*\/\s*$/, "")
      .trim();
    if (/\p{L}/u.test(words)) return textStart(words, 200);
  }
  return "";
}
