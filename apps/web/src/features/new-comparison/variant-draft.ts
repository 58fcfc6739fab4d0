/**
 * A comparison being written: what each variant changes of the common config. A setting that a variant leaves alone is the common one;
 * `null` is a value and no removal, as in the merge of a launch. Pure.
 */
import { maxVariants } from "@rolldeck/contracts/api/comparisons";
import { z } from "zod";
import type { Issue } from "../new-run/config-field.tsx";
import { type Field, labelOf, sections } from "../new-run/config-fields.ts";
import { type Path, pathText, valueAt } from "../new-run/config-text.ts";

/** As it stands in the address, where labels may be empty or alike while they are typed. */
export const VariantDrafts = z
  .array(z.object({ label: z.string().max(60), change: z.record(z.string(), z.json()) }))
  .max(maxVariants);
export type VariantDraft = z.infer<typeof VariantDrafts>[number];

export const firstVariants: readonly VariantDraft[] = [
  { label: "all weights", change: { backend: { lora: null } } },
  { label: "LoRA 32", change: { backend: { lora: { rank: 32 } } } },
];

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @param value undefined: the variant leaves the setting alone, and no empty mapping stays */
export function changed(change: VariantDraft["change"], path: Path, value: unknown): VariantDraft["change"] {
  const next = put(change, path, value);
  return VariantDrafts.element.shape.change.parse(next ?? {});
}

function put(at: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  const { [key]: old, ...others } = isMapping(at) ? at : {};
  const next = put(old, rest, value);
  if (next !== undefined) return { ...(isMapping(at) ? at : {}), [key]: next };
  return Object.keys(others).length > 0 ? others : undefined;
}

const allFields: readonly Field[] = sections.flatMap(({ groups }) => groups.flatMap(({ fields }) => fields));
const fieldAt = (path: string): Field | undefined =>
  allFields.find((field) => pathText(field.path) === path) ??
  allFields.find((field) => path.startsWith(`${pathText(field.path)}.`));

/** What tells backends apart: always shown where the chosen backend has it. */
const backendPaths = (backend: unknown): readonly string[] => [
  "backend.name",
  ...(backend === "tinker" ? ["backend.dialect"] : []),
  ...(backend === "gpu-worker" ? [] : ["backend.server", "backend.endpoint"]),
  "backend.lora",
];

/** Paths of a change that are set, down to values that are no mappings. */
function setPaths(change: unknown, prefix: Path = []): string[] {
  if (!isMapping(change)) return [pathText(prefix)];
  return Object.entries(change).flatMap(([key, value]) => setPaths(value, [...prefix, key]));
}

interface VariantFields {
  readonly backend: readonly Field[];
  /** Settings beside the backend's that the variant changes, or that it has to. */
  readonly others: readonly Field[];
  /** What is wrong with something that has no field of its own. */
  readonly elsewhere: readonly Issue[];
}

/** @param common the config that all variants begin from; its values stand where a field is left alone */
export function variantFields(
  { change }: VariantDraft,
  common: unknown,
  merged: unknown,
  issues: readonly Issue[],
): VariantFields {
  const backend = fieldsAt(backendPaths(valueAt(merged, ["backend", "name"]) ?? "gpu-worker"));
  const named = fieldsAt([...setPaths(change), ...issues.map(({ path }) => path)]);
  const others = named.filter((field) => !backend.includes(field));
  const shown = [...backend, ...others];
  const covers = (field: Field, path: string) =>
    path === pathText(field.path) || path.startsWith(`${pathText(field.path)}.`);
  return {
    backend: backend.map((field) => withCommon(field, common)),
    others: others.map((field) => withCommon({ ...field, label: labelAlone(field) }, common)),
    elsewhere: issues.filter(({ path }) => !shown.some((field) => covers(field, path))),
  };
}

const fieldsAt = (paths: readonly string[]): Field[] => [...new Set(paths.flatMap((path) => fieldAt(path) ?? []))];

/** Away from its group a field says which one that is: `Checkpoints: every`. */
const labelAlone = ({ path, label }: Field): string =>
  path.length > 1 ? `${labelOf(String(path[0]))}: ${label.charAt(0).toLowerCase()}${label.slice(1)}` : label;

/** A field that is left alone has the common config's value, or the schema's where that says nothing. */
function withCommon(field: Field, common: unknown): Field {
  const value = field.kind === "optional-group" ? undefined : valueAt(common, field.path);
  return value === undefined || value === null ? field : { ...field, default: value };
}

/** Those of a refused launch that are said of one variant, by the paths of its config. @param at its place, from 0 */
export const issuesOfVariant = (issues: readonly Issue[], at: number): Issue[] =>
  issues
    .filter(({ path }) => path === `variants[${at}]` || path.startsWith(`variants[${at}].`))
    .map((issue) => ({ ...issue, path: issue.path.replace(/^variants\[\d+\]\.?/, "") }));

/** What keeps a draft from being launched, before any server is asked. */
export function draftFaults(name: string, variants: readonly VariantDraft[]): string[] {
  const labels = variants.map(({ label }) => label.trim());
  const twice = labels.find((label, at) => label !== "" && labels.indexOf(label) !== at);
  return [
    ...(name.trim() === "" ? ["Give the comparison a name."] : []),
    ...(variants.length < 2 ? ["Two variants at least: add another one."] : []),
    ...(labels.includes("") ? ["Give every variant a label."] : []),
    ...(twice === undefined ? [] : [`Two variants are called ${twice}.`]),
  ];
}
