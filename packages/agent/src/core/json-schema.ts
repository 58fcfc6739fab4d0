/**
 * The part of JSON Schema that tools' parameters use, made plain: local `$ref`, `allOf`, `anyOf` and `oneOf` become a list of
 * schemas without them, one of which a value must fit. `oneOf` is read as `anyOf`. What can't be resolved says nothing.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";

export type Json = JsonObject[string];

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Longer chains of references than any tool needs, and circles, end here. */
const maxSteps = 32;
/** More combinations than a model could be told about. */
const maxAlternatives = 64;

export function alternatives(schema: JsonObject, root: JsonObject, steps = maxSteps): readonly JsonObject[] {
  const { $ref: reference, allOf, anyOf, oneOf, ...own } = schema;
  if (steps === 0) return [own];
  let found: readonly JsonObject[] = [own];
  const meet = (others: readonly JsonObject[]) => {
    found = found.flatMap((one) => others.map((other) => merged(other, one))).slice(0, maxAlternatives);
  };
  if (typeof reference === "string") {
    const target = targetOf(reference, root);
    if (target !== null) meet(alternatives(target, root, steps - 1));
  }
  for (const part of list(allOf)) meet(alternatives(part, root, steps - 1));
  for (const choice of [list(anyOf), list(oneOf)]) {
    if (choice.length > 0) meet(choice.flatMap((one) => alternatives(one, root, steps - 1)));
  }
  return found;
}

const list = (value: Json | undefined): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** Both at once; where they name the same keyword, the second one's counts. */
function merged(first: JsonObject, second: JsonObject): JsonObject {
  const properties = isObject(first.properties) && isObject(second.properties);
  const required = Array.isArray(first.required) && Array.isArray(second.required);
  return {
    ...first,
    ...second,
    ...(properties ? { properties: { ...asObject(first.properties), ...asObject(second.properties) } } : {}),
    ...(required ? { required: [...asList(first.required), ...asList(second.required)] } : {}),
  };
}

const asObject = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
const asList = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);

/** `#/$defs/Name`; references to other documents are not read. */
function targetOf(reference: string, root: JsonObject): JsonObject | null {
  if (reference !== "#" && !reference.startsWith("#/")) return null;
  let at: Json | undefined = root;
  for (const part of reference.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return isObject(at) ? at : null;
}

export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** Empty: any type. */
export function typesOf({ type }: JsonObject): readonly string[] {
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((name) => typeof name === "string") : [];
}

export const fits = (value: Json, types: readonly string[]): boolean => {
  const name = typeName(value);
  return types.length === 0 || types.includes(name) || (name === "integer" && types.includes("number"));
};

/** As `typesOf`, taken from the allowed values where no type is named. */
export function valueTypes(schema: JsonObject): readonly string[] {
  const types = typesOf(schema);
  if (types.length > 0) return types;
  if (schema.const !== undefined) return [typeName(schema.const)];
  return Array.isArray(schema.enum) ? [...new Set(schema.enum.map(typeName))] : [];
}

export function allowsNull(schema: JsonObject): boolean {
  if (Array.isArray(schema.enum)) return schema.enum.includes(null);
  const types = valueTypes(schema);
  return types.length === 0 || types.includes("null");
}
