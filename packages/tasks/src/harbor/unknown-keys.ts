/** Keys that a schema does not know, by path. Looks through optional values, defaults, lists and alternatives of tables. */
import { z } from "zod";

/** @returns paths such as `environment.colour` or `steps.0.agent.mood`, at most 100 */
export function unknownKeys(value: unknown, schema: z.core.$ZodType, path: readonly string[] = []): string[] {
  const table = objectOf(schema);
  if (table instanceof z.ZodArray) {
    if (!Array.isArray(value)) return [];
    return value.flatMap((item, at) => unknownKeys(item, table.element, [...path, String(at)])).slice(0, 100);
  }
  if (!(table instanceof z.ZodObject) || !isTable(value)) return [];
  return Object.entries(value)
    .flatMap(([key, inner]) => {
      const known: z.core.$ZodType | undefined = Object.hasOwn(table.shape, key) ? table.shape[key] : undefined;
      return known === undefined ? [[...path, key].join(".")] : unknownKeys(inner, known, [...path, key]);
    })
    .slice(0, 100);
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** What is inside of optional values and defaults; of alternatives, the one that is a table. */
function objectOf(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return objectOf(schema.unwrap());
  }
  if (schema instanceof z.ZodUnion)
    return schema.options.map(objectOf).find((one) => one instanceof z.ZodObject) ?? schema;
  return schema;
}
