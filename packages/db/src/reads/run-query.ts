/**
 * The query language of the run list. Words match name, id and tags; `status:running`, `tag:x`, `project:p`, `kind:train`,
 * `model:m`, `backend:b` and `task:t` narrow; a leading `-` excludes; quotes hold blanks (`tag:"long tag"`). All parts must
 * hold. Pure.
 */
import { InputError } from "@rolldeck/contracts/errors";
import { runStatuses } from "@rolldeck/contracts/lifecycle";

export const queryKeys = ["status", "tag", "project", "kind", "model", "backend", "task"] as const;
export type QueryKey = (typeof queryKeys)[number];
export interface QueryTerm {
  /** null: a plain word. */
  readonly key: QueryKey | null;
  readonly value: string;
  readonly excluded: boolean;
}

const term = /(-?)(?:([a-z]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/gu;
const isKey = (text: string | undefined): text is QueryKey => queryKeys.some((key) => key === text);

/** @throws InputError at `query` for a status that does not exist. */
export function parseRunQuery(query: string): QueryTerm[] {
  return [...query.matchAll(term)].map(([, minus, prefix, quoted, plain]) => {
    const value = quoted === undefined ? (plain ?? "") : quoted.replace(/\\(.)/gu, "$1");
    // A colon after any other word belongs to the word: names hold colons too.
    if (!isKey(prefix)) return { key: null, value: prefix ? `${prefix}:${value}` : value, excluded: minus === "-" };
    if (prefix === "status" && !runStatuses.some((status) => status === value))
      throw new InputError([
        { path: "query", message: `no status "${value}"`, fix: `one of ${runStatuses.join(", ")}` },
      ]);
    return { key: prefix, value, excluded: minus === "-" };
  });
}

/** LIKE pattern for a text that contains `word` as it is. */
const contains = (word: string): string => `%${word.replace(/[\\%_]/gu, "\\$&")}%`;

const columns: Record<QueryKey, (parameter: string) => string> = {
  status: (p) => `r."status" = ${p}`,
  tag: (p) => `${p} = any(r."tags")`,
  project: (p) => `r."project" = ${p}`,
  kind: (p) => `r."kind" = ${p}`,
  model: (p) => `r."config" #>> '{model,name}' = ${p}`,
  backend: (p) => `r."config" #>> '{backend,name}' = ${p}`,
  task: (p) => `exists (select 1 from jsonb_array_elements(r."config" -> 'taskSets') t where t ->> 'name' = ${p})`,
};

/** SQL conditions over `runs r`; values are appended to `values`. */
export function queryConditions(terms: readonly QueryTerm[], values: unknown[]): string {
  const conditions = terms.map(({ key, value, excluded }) => {
    values.push(key ? value : contains(value));
    const p = `$${values.length}`;
    const condition = key
      ? columns[key](p)
      : `(r."name" ilike ${p} or r."id" like ${p} or array_to_string(r."tags", ' ') ilike ${p})`;
    return excluded ? `not (${condition})` : condition;
  });
  return conditions.length > 0 ? conditions.join(" and ") : "true";
}
