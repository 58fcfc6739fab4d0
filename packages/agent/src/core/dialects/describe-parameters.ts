import type { JsonObject } from "@rolldeck/contracts/segments";

const isObject = (value: JsonObject[string] | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `key: string, count?: integer` from a JSON Schema of an arguments object; `?` marks what may be left out. */
export function describeParameters(schema: JsonObject): string {
  if (!isObject(schema.properties)) return "";
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties)
    .map(([name, property]) => `${name}${required.includes(name) ? "" : "?"}: ${typeText(property)}`)
    .join(", ");
}

function typeText(property: JsonObject[string] | undefined): string {
  if (!isObject(property)) return "any";
  if (Array.isArray(property.enum)) return property.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (property.type === "array" && isObject(property.items)) return `${typeText(property.items)}[]`;
  return Array.isArray(property.type) ? property.type.join(" | ") : String(property.type ?? "any");
}
