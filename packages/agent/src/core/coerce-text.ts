/**
 * Text where a schema wants something else. One reading is allowed for each wanted type: the text must be exactly a JSON
 * number, `true`/`false`, `null` (Python's spelling of the words is taken too), or the JSON text of an array or object. Where
 * the schema allows a string, text is a string and stays as it is.
 */

import type { JsonObject } from "@rolldeck/contracts/segments";
import { LiteralError } from "./dialects/literal-reader.ts";
import { readWholeJson } from "./dialects/read-json.ts";
import { alternatives, fits, isObject, type Json, valueTypes } from "./json-schema.ts";

const words = new Map<string, boolean | null>([
  ["true", true],
  ["false", false],
  ["null", null],
  ["True", true],
  ["False", false],
  ["None", null],
]);

/** @param types what is wanted; empty = anything. @returns undefined when the text can't be read as one of them */
export function coerceText(text: string, types: readonly string[]): Json | undefined {
  if (types.length === 0 || types.includes("string")) return undefined;
  const word = words.get(text);
  if (word !== undefined) return fits(word, types) ? word : undefined;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) {
    const number = Number(text);
    const exact = Number.isFinite(number) && (!/^-?\d+$/.test(text) || Number.isSafeInteger(number));
    return exact && fits(number, types) ? number : undefined;
  }
  if (!/^\s*[[{]/.test(text) || !(types.includes("array") || types.includes("object"))) return undefined;
  const value = jsonOf(text);
  return value !== undefined && fits(value, types) ? value : undefined;
}

/** Undefined unless the text is JSON as it stands. */
function jsonOf(text: string): Json | undefined {
  try {
    const { value, mends } = readWholeJson(text);
    return mends.length === 0 ? value : undefined;
  } catch (error) {
    if (error instanceof LiteralError) return undefined;
    throw error;
  }
}

/**
 * An argument from a format that writes all values as text, with spaces around it where it is no string. What can't be read
 * as the schema wants stays text, for the check of arguments to complain about.
 * @param parameters JSON Schema of the arguments object
 */
export function typedArgument(name: string, text: string, parameters: JsonObject): Json {
  const types = alternatives(parameters, parameters).flatMap(({ properties }) => {
    const own = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(own)) return [];
    const wanted = alternatives(own, parameters).map(valueTypes);
    return wanted.some((one) => one.length === 0) ? ["string"] : wanted.flat();
  });
  const read = coerceText(text.trim(), types);
  return read === undefined ? text : read;
}
