/**
 * A call's arguments against the tool's JSON Schema. Invariant: what passes is exactly what the model wrote, but for the
 * coercions written down here; everything else is a message to the model.
 *
 * Coercions, each reported:
 * 1. text where the schema wants no string, as `coerceText` reads it: numbers, booleans, null, arrays and objects;
 * 2. an optional property that is null, where the schema has no null, is dropped; so is an unknown argument that is null
 *    (columnar data taught models to pad every call with nulls).
 *
 * Schema subset: type (one or several), properties, required, additionalProperties, enum, const, items, minItems, maxItems,
 * minLength, maxLength, minimum, maximum, and what `alternatives` resolves: local $ref, allOf, anyOf, oneOf. Arguments outside
 * `properties` are refused unless additionalProperties allows them. Other keywords are not read; `pattern` is not, since a
 * server's expression over a model's text can take for ever: the tool itself answers for it.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";
import { coerceText } from "./coerce-text.ts";
import { allowsNull, alternatives, fits, isObject, type Json, typeName, typesOf, valueTypes } from "./json-schema.ts";

export type CheckedArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly coercions: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

interface Report {
  readonly root: JsonObject;
  readonly problems: string[];
  readonly coercions: string[];
  /** Values still to be looked at; schemas that refer to themselves could ask for any number. */
  readonly budget: { left: number };
}

const maxValues = 100_000;
/** What is said at once; the rest is counted. */
const shownMessages = 10;

export function checkArguments(args: JsonObject, schema: JsonObject): CheckedArguments {
  const report: Report = { root: schema, problems: [], coercions: [], budget: { left: maxValues } };
  const checked = checkValue(args, { type: "object", ...schema }, "", report);
  // A choice may have kept it to itself: nothing that was not looked at is run.
  if (report.budget.left <= 0) return { ok: false, problems: ["arguments: too large to be checked"] };
  if (report.problems.length > 0 || !isObject(checked)) return { ok: false, problems: firstOf(report.problems) };
  return { ok: true, arguments: checked, coercions: firstOf(report.coercions) };
}

function firstOf(messages: readonly string[]): readonly string[] {
  const more = messages.length - shownMessages;
  return more > 0 ? [...messages.slice(0, shownMessages), `and ${more} more`] : messages;
}

/** A path as the model wrote it: `a.b[0]`. */
const at = (path: string): string => (path === "" ? "arguments" : shorten(path));
const inside = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);
const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}...` : text);

function checkValue(value: Json, schema: JsonObject, path: string, report: Report): Json {
  report.budget.left -= 1;
  if (report.budget.left <= 0) return value;
  const choices = alternatives(schema, report.root);
  const [only = {}] = choices;
  return choices.length === 1 ? checkOne(value, only, path, report) : checkAny(value, choices, path, report);
}

/** The first choice that fits as it stands, else the first that fits after coercions. */
function checkAny(value: Json, choices: readonly JsonObject[], path: string, report: Report): Json {
  const tries = choices.map((choice) => {
    const own: Report = { ...report, problems: [], coercions: [] };
    return { choice, own, checked: checkOne(value, choice, path, own) };
  });
  const good = tries.filter(({ own }) => own.problems.length === 0);
  const best = good.find(({ own }) => own.coercions.length === 0) ?? good[0];
  if (best !== undefined) {
    report.coercions.push(...best.own.coercions);
    return best.checked;
  }
  const near = tries.filter(({ choice }) => fits(value, typesOf(choice)));
  if (near.length === 1) report.problems.push(...(near[0]?.own.problems ?? []));
  else if (near.length > 1) report.problems.push(`${at(path)}: fits none of the ${choices.length} allowed shapes`);
  else {
    const types = [...new Set(choices.flatMap(typesOf))];
    report.problems.push(`${at(path)}: expected ${types.join(" or ")}, got ${typeName(value)}`);
  }
  return value;
}

function checkOne(value: Json, schema: JsonObject, path: string, report: Report): Json {
  const types = typesOf(schema);
  const read = coerced(value, schema);
  if (!fits(read, types)) {
    report.problems.push(`${at(path)}: expected ${types.join(" or ")}, got ${typeName(value)}`);
    return value;
  }
  if (read !== value) report.coercions.push(`${at(path)}: ${shorten(JSON.stringify(value))} read as ${typeName(read)}`);
  checkLimits(read, schema, path, report);
  if (Array.isArray(read)) {
    const { items } = schema;
    return isObject(items) ? read.map((item, i) => checkValue(item, items, `${path}[${i}]`, report)) : read;
  }
  return isObject(read) ? checkObject(read, schema, path, report) : read;
}

function coerced(value: Json, schema: JsonObject): Json {
  const read = typeof value === "string" ? coerceText(value, valueTypes(schema)) : undefined;
  return read === undefined ? value : read;
}

function checkObject(value: JsonObject, schema: JsonObject, path: string, report: Report): JsonObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const extra = schema.additionalProperties;
  const open = extra === true || isObject(extra) || schema.properties === undefined;
  const kept: [string, Json][] = [];
  for (const [name, item] of Object.entries(value)) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const where = inside(path, name);
    if (isObject(own)) {
      const padded = item === null && !required.includes(name) && !alternatives(own, report.root).some(allowsNull);
      if (padded) report.coercions.push(`${at(where)}: null dropped`);
      else kept.push([name, checkValue(item, own, where, report)]);
    } else if (open || own === true) {
      kept.push([name, isObject(extra) ? checkValue(item, extra, where, report) : item]);
    } else if (item === null) report.coercions.push(`${at(where)}: null dropped`);
    else report.problems.push(`${at(where)}: no such argument`);
  }
  for (const name of required) {
    if (typeof name === "string" && !Object.hasOwn(value, name)) {
      report.problems.push(`${at(inside(path, name))}: missing`);
    }
  }
  return Object.fromEntries(kept);
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
