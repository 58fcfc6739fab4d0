/**
 * How Python and Jinja show, compare and trim the values that chat templates work with. Templates are written for Python's Jinja;
 * where the JavaScript engine does otherwise (strip with an argument, True, None, equality, numbers in JSON) these functions stand in.
 * A value is what the engine unwraps for functions: a string, number, boolean, null, undefined, or an array or map of engine values.
 */

/** The engine's own wrapper around a value inside a list or a map. */
interface Wrapped {
  readonly type: string;
  readonly value: unknown;
}
const isWrapped = (value: unknown): value is Wrapped =>
  typeof value === "object" && value !== null && "type" in value && "value" in value && !(value instanceof Map);
/** The engine holds None as a wrapper without a value: on its own it can't be told from undefined, in a list or map it can. */
function unwrap(value: unknown): unknown {
  if (!isWrapped(value)) return value;
  return value.type === "NullValue" ? null : value.value;
}

/** What Python's `str.strip()` takes away. */
const space = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const leadingSpace = new RegExp(`^${space}+`);
const trailingSpace = new RegExp(`${space}+$`);
const word = new RegExp(`[^${space.slice(1)}+`, "g");

/** `str.strip(chars)`, `lstrip` and `rstrip`. @throws RangeError when the value is no string */
export function strip(value: unknown, chars: unknown, sides: "both" | "left" | "right"): string {
  if (typeof value !== "string") throw new RangeError("strip needs a string");
  const left = sides !== "right";
  const right = sides !== "left";
  if (typeof chars !== "string") {
    const cut = left ? value.replace(leadingSpace, "") : value;
    return right ? cut.replace(trailingSpace, "") : cut;
  }
  const set = new Set(chars);
  const letters = [...value];
  let start = 0;
  let end = letters.length;
  while (left && start < end && set.has(letters[start] ?? "")) start += 1;
  while (right && end > start && set.has(letters[end - 1] ?? "")) end -= 1;
  return letters.slice(start, end).join("");
}

/** `str.split(sep, maxsplit)`; without a separator, at white space. @throws RangeError */
export function split(value: unknown, separator: unknown, most: unknown): string[] {
  if (typeof value !== "string" || separator === "") throw new RangeError("split needs a string and a separator");
  const limit = typeof most === "number" && most >= 0 ? most : Number.POSITIVE_INFINITY;
  if (typeof separator === "string") {
    const parts = value.split(separator);
    return parts.length <= limit + 1 ? parts : [...parts.slice(0, limit), parts.slice(limit).join(separator)];
  }
  const words = [...value.matchAll(word)];
  const rest = words[limit];
  const whole = words.slice(0, limit).map(([text]) => text);
  return rest === undefined ? whole : [...whole, value.slice(rest.index)];
}

/** `str(value)`: what an expression prints. */
export function str(value: unknown): string {
  const plain = unwrap(value);
  return typeof plain === "string" ? plain : repr(value);
}

function repr(value: unknown): string {
  const plain = unwrap(value);
  if (plain === undefined) return "";
  if (plain === null) return "None";
  if (typeof plain === "boolean") return plain ? "True" : "False";
  if (typeof plain === "number") return numberText(plain);
  if (typeof plain === "string") return quote(plain);
  if (plain instanceof Map) return `{${[...plain].map(([key, item]) => `${repr(key)}: ${repr(item)}`).join(", ")}}`;
  if (Array.isArray(plain)) return `[${plain.map(repr).join(", ")}]`;
  throw new RangeError(`a template can't print a ${typeof plain}`);
}

const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };
// The mark that guards a special token's name stays: without it the name would become the token.
const hidden = /(?!\ud800)[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** A string as Python writes it in a list: single quotes unless it holds only those. */
function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(hidden, (character) => named[character] ?? codePoint(character.codePointAt(0) ?? 0));
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark;
}

function codePoint(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** Python turns to an exponent below 1e-4 and gives it two digits. */
function numberText(value: number): string {
  if (Object.is(value, -0)) return "-0.0";
  if (value === 0 || Number.isInteger(value) || Math.abs(value) >= 1e-4) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** Jinja's `==`: by value, True is 1. */
export function equal(one: unknown, other: unknown): boolean {
  const [a, b] = [unwrap(one), unwrap(other)];
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([key, item]) => b.has(key) && equal(item, b.get(key)));
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => equal(item, b[index]));
  return numeric(a ?? null) === numeric(b ?? null);
}
const numeric = (value: unknown): unknown => (typeof value === "boolean" ? Number(value) : value);

/** `len(value)`: characters of a string, items of anything else. @throws RangeError */
export function length(value: unknown): number {
  if (typeof value === "string") return [...value].length;
  if (value instanceof Map) return value.size;
  if (Array.isArray(value)) return value.length;
  if (value === undefined) return 0;
  throw new RangeError("length needs a string, a list or a map");
}

/** Jinja's tests by name, of an attribute that may be missing. */
const tests: Readonly<Record<string, (value: unknown, other: unknown) => boolean>> = {
  defined: (value) => value !== undefined,
  undefined: (value) => value === undefined,
  none: (value) => value === null,
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  mapping: (value) => value instanceof Map,
  true: (value) => value === true,
  false: (value) => value === false,
  equalto: equal,
  eq: equal,
  "==": equal,
  ne: (value, other) => !equal(value, other),
  "!=": (value, other) => !equal(value, other),
  in: (value, list) => Array.isArray(list) && list.some((item) => equal(item, value)),
};

const isTrue = (value: unknown): boolean =>
  value instanceof Map || Array.isArray(value) ? length(value) > 0 : Boolean(value);

/**
 * `selectattr` (keep) and `rejectattr`: without a test, by truth. The items come back as plain values.
 * @throws RangeError for what is no list of maps, and for an unknown test
 */
export function selectByAttribute(items: unknown, [name, test, other]: readonly unknown[], keep: boolean): unknown[] {
  if (!Array.isArray(items) || typeof name !== "string") throw new RangeError("selectattr needs a list and a name");
  const passes = test === undefined ? isTrue : tests[String(test)];
  if (passes === undefined) throw new RangeError(`there is no test ${String(test)}`);
  const kept = items.filter((item) => {
    const map = unwrap(item);
    const value = map instanceof Map ? unwrap(map.get(name)) : undefined;
    return passes(value, other) === keep;
  });
  return kept.map(plainValue);
}

function plainValue(value: unknown): unknown {
  const plain = unwrap(value);
  if (Array.isArray(plain)) return plain.map(plainValue);
  return plain instanceof Map ? Object.fromEntries([...plain].map(([key, item]) => [key, plainValue(item)])) : plain;
}

export interface JsonStyle {
  readonly ensureAscii: boolean;
  readonly indent: number | null;
  readonly separators: readonly [string, string] | null;
  readonly sortKeys: boolean;
}

/** `json.dumps` as the `tojson` filter of chat templates calls it. @throws RangeError for what JSON can't hold */
export function toJson(value: unknown, style: JsonStyle, depth = 0): string {
  const plain = unwrap(value);
  if (plain === null || plain === undefined) return "null";
  if (typeof plain === "boolean") return String(plain);
  if (typeof plain === "number") return numberText(plain);
  if (typeof plain === "string") return jsonString(plain, style.ensureAscii);
  if (Array.isArray(plain))
    return bracket(
      "[]",
      plain.map((item) => toJson(item, style, depth + 1)),
      style,
      depth,
    );
  if (!(plain instanceof Map)) throw new RangeError(`a ${typeof plain} is not JSON`);
  const entries = [...plain.entries()];
  if (style.sortKeys) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const colon = style.separators?.[1] ?? ": ";
  const items = entries.map(
    ([key, item]) => jsonString(String(key), style.ensureAscii) + colon + toJson(item, style, depth + 1),
  );
  return bracket("{}", items, style, depth);
}

function bracket(
  ends: "[]" | "{}",
  items: readonly string[],
  { indent, separators }: JsonStyle,
  depth: number,
): string {
  if (items.length === 0) return ends;
  const comma = separators?.[0] ?? (indent === null ? ", " : ",");
  if (indent === null) return ends[0] + items.join(comma) + ends[1];
  const line = `\n${" ".repeat(indent * (depth + 1))}`;
  return `${ends[0]}${line}${items.join(comma + line)}\n${" ".repeat(indent * depth)}${ends[1]}`;
}

/** Half a pair on its own. */
const isMark = (text: string, at: number): boolean =>
  text[at] === "\ud800" && !/^[\udc00-\udfff]/.test(text.slice(at + 1, at + 2));

// Surrogates stay as they are: half of one may be the mark that guards a special token's name.
const jsonEscapes = /["\\\p{Cc}]/gu;
function jsonString(text: string, ensureAscii: boolean): string {
  const escaped = text.replace(jsonEscapes, (character) =>
    character > "\u001f" && character !== '"' && character !== "\\"
      ? character
      : JSON.stringify(character).slice(1, -1),
  );
  if (!ensureAscii) return `"${escaped}"`;
  const ascii = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `"${escaped.replace(/\ud800(?![\udc00-\udfff])|[^ -~]/g, (unit, at: number) => (isMark(escaped, at) ? unit : ascii(unit)))}"`;
}
