/** Every field of RunConfig with its help, default and limits, read from the one schema. Pure. */
import { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import type { Path } from "./config-text.ts";

/** The part of JSON Schema that the config uses. */
interface Schema {
  /** Several where null is one of them. */
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
const SchemaShape: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    default: z.unknown().optional(),
    enum: z.array(z.string()).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    exclusiveMinimum: z.number().optional(),
    exclusiveMaximum: z.number().optional(),
    properties: z.record(z.string(), SchemaShape).optional(),
    items: SchemaShape.optional(),
    anyOf: z.array(SchemaShape).optional(),
  }),
);

export interface Field {
  readonly path: Path;
  readonly label: string;
  readonly help: string;
  /** `choices`: any of a fixed list. `structure`: a mapping or a list of mappings, written as YAML. */
  readonly kind:
    | "text"
    | "integer"
    | "number"
    | "choice"
    | "switch"
    | "list"
    | "number-list"
    | "choices"
    | "structure"
    | "optional-group";
  readonly nullable: boolean;
  /** Value when the setting is left out; undefined when it must be given. */
  readonly default: unknown;
  readonly choices: readonly string[];
  /** `1 … 4096`, for the help line. */
  readonly limits: string;
  /** Fields inside an optional group. */
  readonly fields: readonly Field[];
}

const special: Record<string, string> = {
  topP: "Top p",
  topK: "Top k",
  eps: "Epsilon",
  beta1: "Beta 1",
  beta2: "Beta 2",
  demosPerStep: "Demonstrations per step",
  mcp: "MCP servers",
  passAt: "Pass at k",
  lora: "LoRA",
  onLength: "When a turn is cut",
  cpus: "CPUs",
  memoryMb: "Memory, MiB",
  pids: "Processes",
  restartTail: "Restart tail, × expected",
  diskMb: "Disk, MiB",
};
/** `maxContextTokens` → "Max context tokens"; milliseconds say so. */
export function labelOf(key: string): string {
  if (special[key]) return special[key];
  const words = key.replace(/Ms$/, " ms").replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

function limitsOf(schema: Schema): string {
  const low = schema.minimum ?? (schema.exclusiveMinimum === undefined ? undefined : `> ${schema.exclusiveMinimum}`);
  const high = schema.maximum ?? (schema.exclusiveMaximum === undefined ? undefined : `< ${schema.exclusiveMaximum}`);
  const number = (limit: string | number) => (typeof limit === "number" ? limit.toLocaleString("en-US") : limit);
  // Limits that nobody meets are not worth reading; the server still names them when they are passed.
  if (high !== undefined && (typeof high === "string" || high <= 1_048_576))
    return low === undefined ? `≤ ${number(high)}` : `${number(low)} … ${number(high)}`;
  return low === undefined ? "" : typeof low === "string" ? low : `≥ ${number(low)}`;
}

function kindOf(schema: Schema): Field["kind"] {
  if (schema.enum) return "choice";
  if (schema.properties) return "optional-group";
  switch (typeOf(schema)) {
    case "boolean":
      return "switch";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "object":
      return "structure";
    case "array":
      return listKind(schema.items ?? {});
    default:
      return "text";
  }
}

function listKind(items: Schema): Field["kind"] {
  if (items.enum) return "choices";
  if (items.properties) return "structure";
  return items.type === "integer" || items.type === "number" ? "number-list" : "list";
}

/** The type beside null. */
const typeOf = ({ type }: Schema): string | undefined =>
  typeof type === "object" ? type.find((each) => each !== "null") : type;
const mayBeNull = (schema: Schema): boolean =>
  schema.anyOf !== undefined || (typeof schema.type === "object" && schema.type.includes("null"));

/** Has a part of the form to itself. */
const ownEditor = "taskSets";

/** @param outer what the group says of all its fields, where they say nothing themselves */
function fieldsOf(schema: Schema, path: Path, outer = ""): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]): Field[] => {
    const own = [...path, key];
    const inner = property.anyOf?.find((each) => each.type !== "null") ?? property;
    const nullable = mayBeNull(property);
    if (inner.properties && !nullable) return fieldsOf(inner, own, property.description ?? "");
    if (key === ownEditor) return [];
    return [
      {
        path: own,
        label: labelOf(key),
        help: property.description ?? outer,
        kind: kindOf(inner),
        nullable,
        default: property.default,
        choices: inner.enum ?? inner.items?.enum ?? [],
        limits: limitsOf(inner),
        fields: inner.properties ? fieldsOf(inner, own) : [],
      },
    ];
  });
}

const root = SchemaShape.parse(z.toJSONSchema(RunConfig, { io: "input" }));
const all = fieldsOf(root, []).filter((field) => field.path[0] !== "version");
const under = (...prefixes: string[]): Field[] =>
  all.filter((field) => prefixes.some((prefix) => field.path.join(".").startsWith(prefix)));

/** Fields of one task set; `path` is relative to `taskSets[i]`. */
export const taskSetFields: readonly Field[] = fieldsOf(root.properties?.taskSets?.items ?? {}, []);

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly groups: readonly { readonly title: string; readonly fields: readonly Field[] }[];
}
export const sections: readonly Section[] = [
  {
    id: "task",
    title: "Task",
    groups: [
      { title: "Run", fields: under("name", "project", "tags", "kind", "seed", "stepSource", "preflight") },
      { title: "Agent", fields: under("agent.").filter((field) => field.path[1] !== "sampling") },
      { title: "Sampling", fields: under("agent.sampling") },
      { title: "Held-out evaluation", fields: under("evaluation.") },
    ],
  },
  {
    id: "model",
    title: "Model and backend",
    groups: [
      { title: "Model", fields: under("model.") },
      { title: "Backend", fields: under("backend.") },
    ],
  },
  {
    id: "algorithm",
    title: "Algorithm",
    groups: [
      { title: "", fields: under("algorithm.").filter((field) => field.path.length === 2) },
      { title: "KL penalty", fields: under("algorithm.kl.") },
      { title: "Off-policy corrections", fields: under("algorithm.offPolicy.") },
    ],
  },
  {
    id: "resources",
    title: "Resources",
    groups: [
      { title: "Dispatcher", fields: under("dispatcher.") },
      { title: "Sandboxes", fields: under("sandbox.") },
      { title: "Checkpoints", fields: under("checkpoints.") },
      { title: "Budget", fields: under("budget.") },
    ],
  },
];

/** Labels of nested stage settings need their parent to be understood. */
export const fieldLabel = (field: Field): string => {
  const parent = field.path.at(-2);
  if (parent === "bounds") return `${field.label} at once`;
  if (parent === "stageTimeoutMs") return `${field.label} deadline, ms`;
  if (parent === "overSample") return `Extra ${field.label.toLowerCase()}`;
  if (parent === "zeroVariance") return field.path.at(-1) === "mode" ? "Zero-variance groups" : `${field.label} groups`;
  if (parent === "backend" && field.path.at(-1) === "name") return "Backend";
  if (parent === "backend" && field.path.at(-1) === "dialect") return "Server's dialect";
  if (parent === "dispatcher" && field.path.at(-1) === "name") return "Policy";
  return field.label;
};

/** In a form nobody types null: a field that is left empty, or a group that is off, stands for it. */
export const helpText = ({ default: value, help, kind }: Field): string =>
  value === null ? help.replace(/(^|[;,:] )null = /, kind === "optional-group" ? "$1off = " : "$1empty = ") : help;

/** What null stands for, as the help says it: `null = the task's own limit` → "the task's own limit"; else "none". */
export const nullMeaning = (help: string): string => /(?:^|[;,:] )null = ([^;]+)$/.exec(help)?.[1]?.trim() ?? "none";

/** By the path of a config, `taskSets[0].size` too. */
export function nullMeaningOf(path: string): string {
  const generic = path.replace(/^taskSets\[\d+\]\./, "");
  const fields = generic === path ? all : taskSetFields;
  const known = [...fields, ...fields.flatMap((field) => field.fields)];
  return nullMeaning(known.find((field) => field.path.join(".") === generic)?.help ?? "");
}
