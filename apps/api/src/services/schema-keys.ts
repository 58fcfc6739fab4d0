/** Valid keys of RunConfig at a path, from its JSON Schema: what an unknown key is compared with. */
import { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";

const Node = z.object({
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
});

/** JSON Schema of a config as people write it: with descriptions and defaults. */
export const configSchema = z.toJSONSchema(RunConfig, { io: "input", unrepresentable: "any" });

function step(schema: unknown, part: PropertyKey): unknown {
  const node = Node.safeParse(schema).data;
  if (!node) return undefined;
  if (typeof part === "number") return node.items ?? firstDefined(node.anyOf, (one) => step(one, part));
  const own = node.properties && Object.hasOwn(node.properties, part) ? node.properties[String(part)] : undefined;
  return own ?? firstDefined(node.anyOf, (one) => step(one, part));
}

function firstDefined(list: readonly unknown[] | undefined, find: (item: unknown) => unknown): unknown {
  for (const item of list ?? []) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function keysAt(path: readonly PropertyKey[]): string[] {
  const schema = path.reduce<unknown>(step, configSchema);
  const node = Node.safeParse(schema).data;
  const options = [node, ...(node?.anyOf ?? []).map((one) => Node.safeParse(one).data)];
  return options.flatMap((option) => Object.keys(option?.properties ?? {}));
}
