import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openApi } from "./openapi.ts";
import { pathParameters } from "./route.ts";
import { routes } from "./routes.ts";

const Operation = z.object({
  operationId: z.string(),
  parameters: z.array(z.object({ name: z.string(), in: z.string(), required: z.boolean(), schema: z.unknown() })),
  requestBody: z.object({ content: z.record(z.string(), z.unknown()) }).optional(),
  responses: z.record(z.string(), z.unknown()),
});
const Document = z.object({
  openapi: z.literal("3.1.0"),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});
const document = Document.parse(JSON.parse(JSON.stringify(openApi())));

describe("the OpenAPI document", () => {
  it("has every route once, with its path parameters", () => {
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(routes.length);
    for (const route of routes) {
      const operation = document.paths[route.path]?.[route.method.toLowerCase()];
      const inPath = operation?.parameters.filter((parameter) => parameter.in === "path") ?? [];
      expect(inPath.map((parameter) => parameter.name)).toEqual(pathParameters(route.path));
      expect(inPath.every((parameter) => parameter.required)).toBe(true);
      expect(Object.keys(operation?.responses ?? {})).toEqual([String(route.status ?? 200), "default"]);
    }
  });

  it("has a definition for every reference", () => {
    const text = JSON.stringify(openApi());
    const names = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target ?? "");
    expect(names.length).toBeGreaterThan(30);
    for (const target of new Set(names)) {
      expect(target).toMatch(/^#\/components\/schemas\//);
      expect(document.components.schemas).toHaveProperty([target.slice("#/components/schemas/".length)]);
    }
  });

  it("takes a config as JSON or YAML and shows its fields", () => {
    const launch = document.paths["/runs"]?.post;
    expect(Object.keys(launch?.requestBody?.content ?? {})).toEqual(["application/json", "application/yaml"]);
    expect(JSON.stringify(document.components.schemas.RunDetail)).toContain("groupsPerStep");
  });
});
