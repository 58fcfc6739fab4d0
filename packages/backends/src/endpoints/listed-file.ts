/** A list of the operator's: a YAML or JSON file, read once at start. Messages name the place and never a value: it may be a key. */
import { readFile } from "node:fs/promises";
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import { parse } from "yaml";
import type { z } from "zod";

export interface ListKind<T extends z.ZodType> {
  /** Variable that names the file. */
  readonly variable: string;
  /** How messages call the list. */
  readonly root: string;
  readonly schema: T;
}

/** @param file absolute path; null = no list @returns its text @throws InputError */
export async function readListedFile(variable: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
    throw new InputError([{ path: variable, message: `the file can't be read (${code})` }]);
  }
}

/** @throws InputError */
export function parseListed<T extends z.ZodType>(text: string, { variable, root, schema }: ListKind<T>): z.output<T> {
  const parsed = schema.safeParse(readText(variable, text));
  if (parsed.success) return parsed.data;
  throw new InputError(
    parsed.error.issues.map(({ path, message, code }) =>
      issueAt(root, path, code === "unrecognized_keys" ? "an unknown key" : message),
    ),
  );
}

/** Names that were taken by an earlier entry. */
export const takenNames = (root: string, list: readonly { readonly name: string }[]): InputIssue[] =>
  list.flatMap(({ name }, at) =>
    list.findIndex((other) => other.name === name) < at
      ? [issueAt(root, [at, "name"], "is taken by an earlier one")]
      : [],
  );

function readText(variable: string, text: string): unknown {
  try {
    // Aliases could make a small file explode.
    return parse(text, { maxAliasCount: 0, logLevel: "error" });
  } catch {
    // The parser's message quotes the line.
    throw new InputError([{ path: variable, message: "the file is neither YAML nor JSON" }]);
  }
}

export const issueAt = (root: string, path: readonly PropertyKey[], message: string): InputIssue => ({
  path: path.reduce<string>((text, part) => text + (typeof part === "number" ? `[${part}]` : `.${String(part)}`), root),
  message,
});
