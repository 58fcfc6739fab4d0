/**
 * The form's single truth is the YAML text: fields read from it and write single values into it, so the two views never
 * disagree and comments survive. Pure.
 */
import { type Document, isCollection, parseDocument, stringify } from "yaml";

export type Path = readonly (string | number)[];
export interface ParsedText {
  /** Plain value of the text; null when it can't be read. */
  readonly value: Readonly<Record<string, unknown>> | null;
  readonly error: { readonly message: string; readonly line: number | null } | null;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function parseConfigText(text: string): ParsedText {
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error)
    return {
      value: null,
      error: { message: error.message.split("\n")[0] ?? "", line: error.linePos?.[0].line ?? null },
    };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 50 });
  } catch (cause) {
    // Aliases that name nothing, themselves, or too much.
    return { value: null, error: { message: cause instanceof Error ? cause.message : String(cause), line: null } };
  }
  if (value === null || value === undefined) return { value: {}, error: null };
  if (!isRecord(value)) return { value: null, error: { message: "a config is a mapping of names to values", line: 1 } };
  return { value, error: null };
}

export const configToText = (value: unknown): string => stringify(value, { lineWidth: 0 });

/** The value at a path, undefined where nothing is set. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => {
    if (Array.isArray(at) && typeof key === "number") return at[key];
    return isRecord(at) ? at[String(key)] : undefined;
  }, value);
}

/** Removes mappings that a removed value left empty, from the inside out. */
function prune(document: Document, path: Path): void {
  for (let depth = path.length - 1; depth > 0; depth -= 1) {
    const parent = path.slice(0, depth);
    const node = document.getIn(parent);
    if (!isCollection(node) || node.items.length > 0 || typeof path[depth] === "number") return;
    document.deleteIn(parent);
  }
}

/** Writes one value; `undefined` takes the setting out, so that its default holds. Text that can't be read stays as it is. */
export function setInText(text: string, path: Path, value: unknown): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) return text;
  if (value === undefined) {
    if (!document.hasIn(path)) return text;
    document.deleteIn(path);
    prune(document, path);
  } else {
    // A parent that is null or a plain value (`warmStart: null`) must give way to a mapping first.
    for (let depth = 1; depth < path.length; depth += 1) {
      const parent = path.slice(0, depth);
      if (!isCollection(document.getIn(parent)))
        document.setIn(parent, document.createNode(typeof path[depth] === "number" ? [] : {}));
    }
    // A plain value goes into the node that is there, which keeps its comment.
    document.setIn(path, typeof value === "object" && value !== null ? document.createNode(value) : value);
  }
  return document.contents === null || (isCollection(document.contents) && document.contents.items.length === 0)
    ? ""
    : document.toString({ lineWidth: 0 });
}

/** `["taskSets", 0, "weight"]` → `taskSets[0].weight`, the form in which problems name fields. */
export const pathText = (path: Path): string =>
  path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    "",
  );

/** Leaves of a config by dot path, as JSON text. */
export function flatten(value: unknown, prefix: Path = []): Map<string, string> {
  if (isRecord(value) && Object.keys(value).length > 0)
    return new Map(Object.entries(value).flatMap(([key, inner]) => [...flatten(inner, [...prefix, key])]));
  if (Array.isArray(value) && value.some((item) => typeof item === "object"))
    return new Map(value.flatMap((item, index) => [...flatten(item, [...prefix, index])]));
  return new Map([[pathText(prefix), JSON.stringify(value) ?? "null"]]);
}

export interface ConfigDifference {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}
/** What differs between two configs, in the order of the second, then what only the first has. */
export function configDifferences(before: unknown, after: unknown): ConfigDifference[] {
  const old = flatten(before);
  const fresh = flatten(after);
  const paths = [...fresh.keys(), ...[...old.keys()].filter((path) => !fresh.has(path))];
  return paths
    .map((path) => ({ path, before: old.get(path) ?? null, after: fresh.get(path) ?? null }))
    .filter((difference) => difference.before !== difference.after);
}
