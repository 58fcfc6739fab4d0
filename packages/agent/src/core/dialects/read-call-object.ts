/**
 * A call from a JSON object that names it: `{"name": …, "arguments": {…}}`. Two near misses have one meaning only and are
 * read, and said: the arguments under the key of another family, and arguments given as JSON text. Anything else beside the
 * expected keys is an error, since it may be an argument in the wrong place.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";
import { type Json, LiteralError } from "./literal-reader.ts";
import { isObject, readWholeJson } from "./read-json.ts";

export interface CallShape {
  /** Where this family keeps the arguments. */
  readonly key: "arguments" | "parameters";
  /** Keys that say nothing the call needs. */
  readonly ignored: readonly string[];
}
export interface CallRead {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly mends: readonly string[];
}

/** @param at offset for the error. @throws LiteralError */
export function readCallObject(value: Json, shape: CallShape, at: number): CallRead {
  const fail = (message: string): never => {
    throw new LiteralError(message, at);
  };
  if (!isObject(value)) return fail(`expected a JSON object with "name" and "${shape.key}"`);
  const other = shape.key === "arguments" ? "parameters" : "arguments";
  const aliased = !Object.hasOwn(value, shape.key) && Object.hasOwn(value, other);
  const key = aliased ? other : shape.key;
  const { name } = value;
  if (typeof name !== "string") return fail('"name" must be a string');
  const unknown = Object.keys(value).find((own) => own !== "name" && own !== key && !shape.ignored.includes(own));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 64));
    return fail(`beside "name" and "${shape.key}" there must be nothing, found ${shown}`);
  }
  const read = readArguments(Object.hasOwn(value, key) ? value[key] : {});
  if (read === null) return fail(`"${key}" must be a JSON object`);
  const renamed = aliased ? [`"${other}" was read as "${shape.key}"`] : [];
  return { name, arguments: read.arguments, mends: [...renamed, ...read.mends] };
}

function readArguments(value: Json | undefined): Pick<CallRead, "arguments" | "mends"> | null {
  if (isObject(value)) return { arguments: value, mends: [] };
  if (typeof value !== "string") return null;
  try {
    const { value: inner, mends } = readWholeJson(value);
    return isObject(inner) ? { arguments: inner, mends: ["arguments given as JSON text were read", ...mends] } : null;
  } catch (error) {
    if (error instanceof LiteralError) return null;
    throw error;
  }
}
