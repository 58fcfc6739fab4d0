/** Every language the index reads. Adding one: its file and a line here. */
import { go } from "./go.ts";
import { java } from "./java.ts";
import type { Language } from "./language.ts";
import { python } from "./python.ts";
import { rust } from "./rust.ts";
import { javascript, tsx, typescript } from "./typescript.ts";

export const languages: readonly Language[] = [python, typescript, tsx, javascript, go, rust, java];

const byExtension = new Map(
  languages.flatMap((language) => language.extensions.map((one) => [one, language] as const)),
);

/** Of all languages, with the dot. */
export const sourceExtensions: readonly string[] = [...byExtension.keys()];

/** Undefined: no source file. */
export function languageOf(path: string): Language | undefined {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? byExtension.get(path.slice(dot).toLowerCase()) : undefined;
}
