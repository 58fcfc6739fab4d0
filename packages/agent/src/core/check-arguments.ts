/**
 * A call's arguments against the tool's JSON Schema. Invariant: what passes is exactly what the model wrote, but for the
 * coercions written down here; everything else is a message to the model.
 *
 * Coercions:
 * 1. a string that is exactly a JSON number becomes that number where the schema wants a number (or integer) and no string;
 * 2. "true" and "false" become booleans where the schema wants a boolean and no string;
 * 3. an optional property that is null, where the schema has no null, is dropped; so is an unknown argument that is null
 *    (columnar data taught models to pad every call with nulls).
 *
 * Schema subset: type (one or several), properties, required, additionalProperties, enum, const, items, minItems, maxItems,
 * minLength, maxLength, minimum, maximum. Arguments outside `properties` are refused unless additionalProperties allows
 * them. Other keywords are not read.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";

type Json = JsonObject[string];
export type CheckedArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly coercions: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

interface Report {
  readonly problems: string[];
  readonly coercions: string[];
}

export function checkArguments(args: JsonObject, schema: JsonObject): CheckedArguments {
  const report: Report = { problems: [], coercions: [] };
  const checked = checkObject(args, { type: "object", ...schema }, "", report);
  if (report.problems.length > 0) return { ok: false, problems: report.problems };
  return { ok: true, arguments: checked, coercions: report.coercions };
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function typesOf(schema: JsonObject): string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((name) => typeof name === "string") : [];
}

const fits = (value: Json, types: readonly string[]): boolean => {
  const name = typeName(value);
  return types.length === 0 || types.includes(name) || (name === "integer" && types.includes("number"));
};

/** A path as the model wrote it: `a.b[0]`. */
const at = (path: string): string => (path === "" ? "arguments" : path);

function checkValue(value: Json, schema: JsonObject, path: string, report: Report): Json {
  const types = typesOf(schema);
  const coerced = fits(value, types) ? value : coerce(value, types);
  if (coerced === undefined) {
    report.problems.push(`${at(path)}: expected ${types.join(" or ")}, got ${typeName(value)}`);
    return value;
  }
  if (coerced !== value) report.coercions.push(`${at(path)}: ${JSON.stringify(value)} read as ${typeName(coerced)}`);
  checkLimits(coerced, schema, path, report);
  if (Array.isArray(coerced)) {
    const { items } = schema;
    return isObject(items) ? coerced.map((item, i) => checkValue(item, items, `${path}[${i}]`, report)) : coerced;
  }
  return isObject(coerced) ? checkObject(coerced, schema, path, report) : coerced;
}

function coerce(value: Json, types: readonly string[]): Json | undefined {
  if (typeof value !== "string" || types.includes("string")) return undefined;
  if (types.includes("boolean") && (value === "true" || value === "false")) return value === "true";
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(value)) return undefined;
  const number = Number(value);
  const exact = Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number));
  return exact && fits(number, types) ? number : undefined;
}

function checkObject(value: JsonObject, schema: JsonObject, path: string, report: Report): JsonObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const extra = schema.additionalProperties;
  const open = extra === true || isObject(extra) || schema.properties === undefined;
  const kept: [string, Json][] = [];
  for (const [name, item] of Object.entries(value)) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const where = path === "" ? name : `${path}.${name}`;
    if (isObject(own)) {
      const padded = item === null && !required.includes(name) && !allowsNull(own);
      if (padded) report.coercions.push(`${where}: null dropped`);
      else kept.push([name, checkValue(item, own, where, report)]);
    } else if (open || own === true) {
      kept.push([name, isObject(extra) ? checkValue(item, extra, where, report) : item]);
    } else if (item === null) report.coercions.push(`${where}: null dropped`);
    else report.problems.push(`${where}: no such argument`);
  }
  for (const name of required) {
    if (typeof name === "string" && !Object.hasOwn(value, name)) {
      report.problems.push(`${path === "" ? name : `${path}.${name}`}: missing`);
    }
  }
  return Object.fromEntries(kept);
}

function allowsNull(schema: JsonObject): boolean {
  if (Array.isArray(schema.enum)) return schema.enum.includes(null);
  const types = typesOf(schema);
  return types.length === 0 || types.includes("null");
}

function checkLimits(value: Json, schema: JsonObject, path: string, report: Report): void {
  const same = (other: Json) => JSON.stringify(other) === JSON.stringify(value);
  const complain = (message: string) => report.problems.push(`${at(path)}: ${message}`);
  if (Array.isArray(schema.enum) && !schema.enum.some(same)) complain(`must be one of ${JSON.stringify(schema.enum)}`);
  if (schema.const !== undefined && !same(schema.const)) complain(`must be ${JSON.stringify(schema.const)}`);
  const bounds: [size: number | null, low: Json | undefined, high: Json | undefined, what: string][] = [
    [typeof value === "number" ? value : null, schema.minimum, schema.maximum, "the value"],
    [typeof value === "string" ? [...value].length : null, schema.minLength, schema.maxLength, "its length"],
    [Array.isArray(value) ? value.length : null, schema.minItems, schema.maxItems, "its number of items"],
  ];
  for (const [size, low, high, what] of bounds) {
    if (size === null) continue;
    if (typeof low === "number" && size < low) complain(`${what} must be at least ${low}`);
    if (typeof high === "number" && size > high) complain(`${what} must be at most ${high}`);
  }
}
