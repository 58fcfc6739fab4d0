/** Makes the one input object of a route from path, query and body. Nothing is guessed: what does not fit stays as it came. */
import { z } from "zod";
import { decodeBody, parseJson } from "../http/read-body.ts";
import { ProblemError } from "../problems.ts";
import { pathParameters, type Route } from "./route.ts";

type Fields = Record<string, unknown>;

const JsonSchema = z.object({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  anyOf: z.array(z.unknown()).optional(),
  items: z.unknown().optional(),
});

/** Types a field's JSON Schema allows. */
function typesOf(schema: unknown): string[] {
  const parsed = JsonSchema.safeParse(schema);
  if (!parsed.success) return [];
  const { type, anyOf } = parsed.data;
  return [...(type === undefined ? [] : [type].flat()), ...(anyOf ?? []).flatMap(typesOf)];
}

const itemsOf = (schema: unknown): unknown => JsonSchema.safeParse(schema).data?.items;

export const inputProperties = (input: z.ZodObject): Fields => {
  const schema = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  return { ...schema.properties };
};

/** A query value as the type its field has; a value that is not of that type stays text, and the schema refuses it. */
function coerce(text: string, types: readonly string[]): unknown {
  if (types.includes("integer") || types.includes("number"))
    if (/^-?\d{1,16}(\.\d{1,16})?$/u.test(text)) return Number(text);
  if (types.includes("boolean") && (text === "true" || text === "false")) return text === "true";
  return text;
}

export function queryInput(input: z.ZodObject, search: URLSearchParams): Fields {
  const properties = inputProperties(input);
  const fields: Fields = {};
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name);
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const types = typesOf(schema);
    if (types.includes("array")) {
      const itemTypes = typesOf(itemsOf(schema));
      setField(
        fields,
        name,
        values.flatMap((value) => value.split(",")).map((value) => coerce(value, itemTypes)),
      );
    } else {
      const coerced = values.map((value) => coerce(value, types));
      setField(fields, name, coerced.length === 1 ? coerced[0] : coerced);
    }
  }
  return fields;
}

/** `__proto__` from a stranger becomes a plain unknown key, never a prototype. */
function setField(fields: Fields, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

const yamlTypes = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];

/** @throws ProblemError for a media type or a body that no route takes */
export function bodyInput(route: Route, contentType: string | null, body: Uint8Array): Fields {
  if (body.length === 0) return {};
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (route.textField && yamlTypes.includes(type)) return { [route.textField]: decodeBody(body) };
  if (type !== "application/json")
    throw new ProblemError("bad-media-type", `Send application/json${route.textField ? " or application/yaml" : ""}.`);
  const value = parseJson(decodeBody(body));
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ProblemError("bad-input", "The body must be a JSON object.", {
      issues: [{ path: "", message: "must be a JSON object" }],
    });
  return { ...value };
}

/** @throws ProblemError when the body names what the path fixes */
export function mergeInput(route: Route, path: Fields, rest: Fields): Fields {
  const taken = [...pathParameters(route.path), ...Object.keys(route.fixed ?? {})];
  const doubled = taken.find((name) => Object.hasOwn(rest, name));
  if (doubled)
    throw new ProblemError("bad-input", `${doubled}: is given by the path.`, {
      issues: [{ path: doubled, message: "is given by the path" }],
    });
  return { ...rest, ...route.fixed, ...path };
}
