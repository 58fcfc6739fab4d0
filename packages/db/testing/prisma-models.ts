/** Tables as prisma/schema.prisma describes them, in the words of the database. Reads what that file uses, not all of the language. */

export interface TableShape {
  readonly columns: Readonly<
    Record<string, { readonly type: string; readonly nullable: boolean; readonly hasDefault: boolean }>
  >;
  readonly primaryKey: readonly string[];
  readonly uniques: readonly (readonly string[])[];
  readonly indexes: readonly string[];
  /** `run_id → runs.id cascade` */
  readonly foreignKeys: readonly string[];
}

const types: Readonly<Record<string, string>> = {
  String: "text",
  BigInt: "int8",
  Int: "int4",
  Float: "float8",
  Boolean: "bool",
  Json: "jsonb",
  Bytes: "bytea",
  DateTime: "timestamptz",
};

interface Field {
  readonly name: string;
  readonly type: string;
  readonly rest: string;
}
interface Model {
  readonly table: string;
  readonly fields: readonly Field[];
  readonly attributes: string;
}

export function prismaTables(schema: string): Map<string, TableShape> {
  const models = new Map<string, Model>();
  for (const [, name = "", body = ""] of schema.matchAll(/^model (\w+) \{\n(.*?)^\}/gms))
    models.set(name, modelOf(name, body));
  return new Map([...models.values()].map((model) => [model.table, shapeOf(model, models)]));
}

function modelOf(name: string, body: string): Model {
  const lines = body.split("\n").map((line) => line.trim());
  const attributes = lines.filter((line) => line.startsWith("@@")).join("\n");
  const fields = lines
    .filter((line) => /^\w/.test(line))
    .map((line) => /^(\w+)\s+(\S+)\s*(.*)$/.exec(line))
    .map((found) => ({ name: found?.[1] ?? "", type: found?.[2] ?? "", rest: found?.[3] ?? "" }));
  return { table: /@@map\("(\w+)"\)/.exec(attributes)?.[1] ?? name, fields, attributes };
}

const bare = (type: string): string => type.replace(/[?[\]]/g, "");
const columnOf = (field: Field | undefined): string =>
  /@map\("(\w+)"\)/.exec(field?.rest ?? "")?.[1] ?? field?.name ?? "?";

function shapeOf(model: Model, models: ReadonlyMap<string, Model>): TableShape {
  const named = (of: Model, list: string): string[] =>
    list.split(",").map((name) => columnOf(of.fields.find((field) => field.name === name.trim().replace(/\(.*/, ""))));
  const stored = model.fields.filter((field) => bare(field.type) in types);
  const id = /@@id\(\[(.*?)\]/.exec(model.attributes)?.[1];
  return {
    columns: Object.fromEntries(
      stored.map((field) => [
        columnOf(field),
        {
          type: (field.type.endsWith("[]") ? "_" : "") + types[bare(field.type)],
          nullable: field.type.endsWith("?"),
          hasDefault: field.rest.includes("@default("),
        },
      ]),
    ),
    primaryKey: id ? named(model, id) : stored.filter((field) => /@id\b/.test(field.rest)).map(columnOf),
    uniques: [
      ...[...model.attributes.matchAll(/@@unique\(\[(.*?)\]/g)].map((found) => named(model, found[1] ?? "")),
      ...stored.filter((field) => /@unique\b/.test(field.rest)).map((field) => [columnOf(field)]),
    ],
    indexes: [...model.attributes.matchAll(/@@index\(.*map: "(\w+)"/g)].map((found) => found[1] ?? ""),
    foreignKeys: model.fields.flatMap((field) => {
      const found = /@relation\(fields: \[(\w+)\], references: \[(\w+)\], onDelete: (\w+)/.exec(field.rest);
      const target = models.get(bare(field.type));
      if (!found || !target) return [];
      const [, from = "", to = "", onDelete] = found;
      const rule = onDelete === "Cascade" ? "cascade" : "no action";
      return [`${named(model, from)} → ${target.table}.${named(target, to)} ${rule}`];
    }),
  };
}
