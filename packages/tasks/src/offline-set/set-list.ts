/**
 * The list that the offline SWE set is built from (infra/swe-set/tasks.yaml): one entry is one task. It names packages, versions and
 * files; the bug, its fix and its tests come out of what the registries serve.
 */
import { InputError } from "@rolldeck/contracts/errors";
import { parse } from "yaml";
import { z } from "zod";

/** A path below the repository's root. */
const Path = z
  .string()
  .regex(/^(?!\/)(?!.*(^|\/)\.\.?(\/|$))[\w./+@-]+$/, "must be a path below the repository's root");

const DebianSource = z.strictObject({
  /** Name of the source package. */
  debian: z.string().regex(/^[a-z0-9][a-z0-9+.-]+$/),
  version: z.string().regex(/^[A-Za-z0-9.+:~-]+$/),
  /** Name in debian/patches/series, `.patch` may be left out. */
  fix: z.string().regex(/^[\w.+~-]+$/),
});
const PypiSource = z.strictObject({
  pypi: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
  /** The version with the bug. */
  version: z.string().regex(/^[\w.!+-]+$/),
  fixedIn: z.string().regex(/^[\w.!+-]+$/),
  /** Files that the fix changed. */
  fix: z.array(Path).min(1),
  /** Files of its tests. */
  tests: z.array(Path).min(1),
});

export const OfflineEntry = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{1,58}$/, "must be small letters, digits and -"),
  source: z.union([DebianSource, PypiSource]),
  /** Run by bash in the repository's root. */
  test: z.string().min(1).max(1000),
  log: z.enum(["pytest", "django"]).default("pytest"),
  timeoutS: z.int().min(1).max(3600).default(120),
  /** Shown to the agent as the problem's statement. */
  report: z.string().min(40).max(20_000),
});
export type OfflineEntry = z.output<typeof OfflineEntry>;
export type DebianSource = z.output<typeof DebianSource>;
export type PypiSource = z.output<typeof PypiSource>;

/** @throws InputError that names the entry and the field */
export function readSetList(text: string): OfflineEntry[] {
  const parsed = z.array(OfflineEntry).min(1).safeParse(parse(text));
  if (!parsed.success) {
    throw new InputError(
      parsed.error.issues.map(({ path, message }) => ({ path: `tasks.${path.join(".")}`, message })),
    );
  }
  const ids = new Set<string>();
  for (const { id } of parsed.data) {
    if (ids.has(id)) throw new InputError([{ path: "tasks", message: `${id} is there twice` }]);
    ids.add(id);
  }
  return parsed.data;
}

/** What the set calls a repository. */
export const repositoryName = ({ source }: OfflineEntry): string =>
  "debian" in source ? `debian/${source.debian}` : `pypi/${source.pypi}`;
