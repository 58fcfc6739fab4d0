/**
 * Everything launch says about a config, without launching: form and CLI ask the same. Two layers: the schema (types, ranges,
 * unknown keys with the nearest valid one), then this server's catalogue (names, and settings its backends can't honour).
 * Pure but for the catalogue it is given.
 */
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { estimate } from "@rolldeck/dispatch/estimate";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import { fieldPath } from "../problems.ts";
import { withoutCredentials } from "../without-credentials.ts";
import { type CheckCatalogue, catalogueIssues } from "./catalogue-issues.ts";
import { parseConfigText } from "./parse-config-text.ts";
import { keysAt } from "./schema-keys.ts";

type Issue = z.output<typeof ConfigIssue>;
const maxIssues = 50;

/** @param config an object, or YAML or JSON text */
export function checkConfig(config: unknown, catalogue: CheckCatalogue): ConfigCheck {
  const read = readConfig(config);
  if ("issues" in read) return failed(read.issues);
  const parsed = RunConfig.safeParse(read.value, { reportInput: true });
  if (!parsed.success) {
    const issues = parsed.error.issues.filter(isLastWord).flatMap((issue) => schemaIssues(issue));
    return failed([...issues, ...issuesOfTheRest(read.value, parsed.error.issues, catalogue)]);
  }
  const { issues, warnings } = catalogueIssues(parsed.data, catalogue);
  if (issues.length > 0) return { ...failed(issues), warnings };
  return { ok: true, config: parsed.data, issues: [], warnings, estimate: estimate(parsed.data) };
}

/**
 * What the catalogue says of the settings that are well formed, so that nothing new turns up once the others are mended: the
 * others are left to their defaults, and what is said of those is not repeated.
 */
function issuesOfTheRest(value: unknown, wrong: readonly z.core.$ZodIssue[], catalogue: CheckCatalogue): Issue[] {
  const rest: unknown = structuredClone(value);
  for (const { path } of wrongPaths(wrong)) removeAt(rest, path);
  const [known] = catalogue.taskSets;
  const stand = { taskSets: [{ name: known?.name ?? "none" }] };
  const parsed = RunConfig.safeParse(rest);
  const again = parsed.success ? parsed : RunConfig.safeParse({ ...Object(rest), ...stand });
  if (!again.success) return [];
  const unsaid = [...wrongPaths(wrong).map(({ path }) => fieldPath(path)), ...(parsed.success ? [] : ["taskSets"])];
  return catalogueIssues(again.data, catalogue).issues.filter(
    ({ path }) => !unsaid.some((said) => path === said || path.startsWith(`${said}.`) || path.startsWith(`${said}[`)),
  );
}

const wrongPaths = (wrong: readonly z.core.$ZodIssue[]): { path: readonly PropertyKey[] }[] =>
  wrong.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => ({ path: [...issue.path, key] })) : [issue],
  );

/** An item of a list is left undefined, so that the others keep their places. */
function removeAt(value: unknown, path: readonly PropertyKey[]): void {
  const key = path.at(-1);
  const parent = path.slice(0, -1).reduce<unknown>((at, part) => (isObject(at) ? Reflect.get(at, part) : null), value);
  if (key === undefined || !isObject(parent)) return;
  if (Array.isArray(parent)) Reflect.set(parent, key, undefined);
  else Reflect.deleteProperty(parent, key);
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

function readConfig(config: unknown): { value: unknown } | { issues: Issue[] } {
  try {
    const value = typeof config === "string" ? parseConfigText(config) : config;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value };
    return { issues: [{ path: "", message: "a config is a mapping of keys to values", fix: "start from a preset" }] };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { issues: error.issues.map(({ path, message, fix }) => ({ path, message, fix: fix ?? null })) };
  }
}

const failed = (issues: readonly Issue[]): ConfigCheck => ({
  ok: false,
  config: null,
  issues: issues.slice(0, maxIssues).map(({ path, message, fix }) => ({
    path: withoutCredentials(path),
    message: withoutCredentials(message),
    fix: fix === null ? null : withoutCredentials(fix),
  })),
  warnings: [],
  estimate: null,
});

/** Past 2^53 the schema speaks twice of a number: as an integer, then of the field's own limit. The second is the useful one. */
const isLastWord = (issue: z.core.$ZodIssue, at: number, all: readonly z.core.$ZodIssue[]): boolean =>
  !all
    .slice(at + 1)
    .some((later) => later.code === issue.code && later.code.startsWith("too_") && samePath(later, issue));

const samePath = (one: z.core.$ZodIssue, other: z.core.$ZodIssue): boolean =>
  fieldPath(one.path) === fieldPath(other.path);

const isMissing = (issue: z.core.$ZodIssue): boolean => issue.code === "invalid_type" && issue.input === undefined;

function schemaIssues(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code !== "unrecognized_keys") {
    const message = isMissing(issue) ? "is required" : (limitWords(issue) ?? issue.message);
    return [{ path: fieldPath(issue.path), message, fix: enumFix(issue) }];
  }
  const valid = keysAt(issue.path);
  return issue.keys.slice(0, maxIssues).map((key) => {
    const nearest = nearestName(key, valid);
    return {
      path: fieldPath([...issue.path, key.slice(0, 100)]),
      message: "unknown key",
      fix: nearest ? `did you mean ${nearest}?` : `valid keys: ${valid.join(", ")}`,
    };
  });
}

/** A number outside its limits, in words; null for anything else. */
function limitWords(issue: z.core.$ZodIssue): string | null {
  if (issue.code !== "too_small" && issue.code !== "too_big") return null;
  if (issue.origin !== "number" && issue.origin !== "int") return null;
  const inclusive = issue.inclusive ?? true;
  return issue.code === "too_small"
    ? `must be ${inclusive ? "at least" : "more than"} ${issue.minimum}`
    : `must be ${inclusive ? "at most" : "less than"} ${issue.maximum}`;
}

function enumFix(issue: z.core.$ZodIssue): string | null {
  if (issue.code !== "invalid_value") return null;
  const names = issue.values.filter((value) => typeof value === "string");
  const nearest = typeof issue.input === "string" ? nearestName(issue.input, names) : null;
  return nearest ? `did you mean ${nearest}?` : null;
}
