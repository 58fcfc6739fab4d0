/** The OpenAPI 3.1 document of `routes`, generated once from the same schemas that serve. */
import { Problem } from "@rolldeck/contracts/api/problems";
import { z } from "zod";
import manifest from "../../package.json" with { type: "json" };
import { inputProperties } from "./read-input.ts";
import { pathParameters, type Route } from "./route.ts";
import { routes } from "./routes.ts";

type Json = Record<string, unknown>;
let document: Json | null = null;

export function openApi(): Json {
  document ??= build();
  return document;
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

function build(): Json {
  const schemas: Record<string, unknown> = {};
  addSchema(schemas, "Problem", Problem, "output");
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    if (!route.isFile) addSchema(schemas, route.replyName, route.reply, "output");
    for (const line of Object.values(route.fileTypes ?? {}))
      if (line !== null) addSchema(schemas, line.name, line.schema, "output");
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Rolldeck",
      version: manifest.version,
      description:
        "Launch, watch and steer reinforcement learning runs of multi-turn agents. Errors are RFC 9457 problems that name the field. A POST may carry an Idempotency-Key. Times are RFC 3339 UTC.",
    },
    servers: [{ url: "/api/v1" }],
    security: [{ bearer: [] }],
    tags: ["runs", "rollouts", "sandboxes", "driven", "system"].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "Owner token or API token" } },
      schemas,
    },
  };
}

function operation(route: Route, schemas: Record<string, unknown>): Json {
  const reply = {
    description: route.status === 201 ? "Created" : "OK",
    content: route.isFile ? fileContent(route) : { "application/json": { schema: ref(route.replyName) } },
    ...(route.path === "/runs" && route.status === 201
      ? { headers: { Location: { schema: { type: "string" }, description: "Address of the run" } } }
      : {}),
  };
  const body = requestBody(route, schemas);
  return {
    operationId: route.operationId,
    summary: route.summary,
    tags: [route.tag],
    "x-scope": route.needs,
    parameters: parameters(route),
    ...(body ? { requestBody: body } : {}),
    responses: {
      [String(route.status ?? 200)]: reply,
      default: { description: "A problem", content: { "application/problem+json": { schema: ref("Problem") } } },
    },
  };
}

function fileContent({ fileTypes = { "application/octet-stream": null } }: Route): Json {
  const binary = { type: "string", format: "binary" };
  return Object.fromEntries(
    Object.entries(fileTypes).map(([type, line]) => [type, { schema: line === null ? binary : ref(line.name) }]),
  );
}

function parameters(route: Route): Json[] {
  const properties = inputProperties(route.input);
  const inPath = pathParameters(route.path);
  const required = new Set(z.toJSONSchema(route.input, { io: "input", unrepresentable: "any" }).required ?? []);
  const path = inPath.map((name) => ({ name, in: "path", required: true, schema: properties[name] ?? {} }));
  if (route.method !== "GET") return route.method === "POST" ? [...path, idempotencyKey] : path;
  const query = Object.keys(properties)
    .filter((name) => !inPath.includes(name) && !Object.hasOwn(route.fixed ?? {}, name))
    .map((name) => ({ name, in: "query", required: required.has(name), schema: properties[name] ?? {} }));
  return [...path, ...query];
}

const idempotencyKey: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  schema: { type: "string", minLength: 1, maxLength: 255 },
  description: "The same key with the same body is done once",
};

function requestBody(route: Route, schemas: Record<string, unknown>): Json | null {
  if (route.method !== "POST") return null;
  const given = [...pathParameters(route.path), ...Object.keys(route.fixed ?? {})];
  const body = z.strictObject(
    Object.fromEntries(Object.entries(route.input.shape).filter(([name]) => !given.includes(name))),
  );
  if (Object.keys(body.shape).length === 0) return null;
  const name = `${route.operationId[0]?.toUpperCase()}${route.operationId.slice(1)}Body`;
  addSchema(schemas, name, body, "input");
  const text = route.textField ? { "application/yaml": { schema: { type: "string" } } } : {};
  return {
    required: route.textField !== undefined,
    content: { "application/json": { schema: ref(name) }, ...text },
  };
}

/** Definitions inside a schema move up to the components, or their references would point into the document's root. */
function addSchema(schemas: Record<string, unknown>, name: string, schema: z.ZodType, io: "input" | "output"): void {
  if (Object.hasOwn(schemas, name)) return;
  const { $schema: _, $defs, ...json } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  const rename = (value: unknown): unknown => JSON.parse(renamed(JSON.stringify(value), name));
  schemas[name] = rename(json);
  for (const [key, definition] of Object.entries($defs ?? {})) schemas[`${name}.${key}`] = rename(definition);
}

const renamed = (json: string, name: string): string =>
  json
    .replaceAll(/"\$ref":"#\/\$defs\/([^"]+)"/gu, `"$ref":"#/components/schemas/${name}.$1"`)
    .replaceAll('"$ref":"#"', `"$ref":"#/components/schemas/${name}"`);
