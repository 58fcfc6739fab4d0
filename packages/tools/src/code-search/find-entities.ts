/**
 * What a search term names: an exact id, a name, a name in other letters, the end of a name or path, and only then something that
 * looks like it. Each step is taken only when those before gave nothing. Pure.
 */
import type { EntityRef } from "./indexed-file.ts";
import { refId } from "./indexed-file.ts";
import { inTree } from "./path-pattern.ts";
import { nearness } from "./repository-index.ts";
import type { RepositoryView } from "./repository-view.ts";
import { lastName } from "./source-file.ts";

export type MatchKind = "id" | "name" | "caseless" | "suffix" | "near";

export interface Found {
  readonly how: MatchKind;
  readonly refs: readonly EntityRef[];
  /** A folder of that path. */
  readonly folder: string | null;
}

/** What agents write before a name. */
const announcement = /^(?:(?:async )?def|class|function|method|func|fn|struct|interface|trait|enum) +/i;

export const plainTerm = (term: string): string =>
  term
    .trim()
    .replace(/^[`"']+|[`"']+$/g, "")
    .replace(announcement, "")
    .replace(/\(\)?$/, "")
    .replace(/^\.+|\.+$/g, "")
    .trim();

/** Null: nothing that is called so. `near` is not looked for here. */
export function findEntities(view: RepositoryView, term: string, root: string): Found | null {
  const name = plainTerm(term);
  if (name === "") return null;
  const byId = exactId(view, name, root);
  if (byId !== null) return byId;
  if (/\s/.test(name)) return null;
  const qualified = name.replaceAll("::", ".").replace(/^.*:/, "");
  const steps: [MatchKind, readonly EntityRef[]][] = [
    ["name", endingIn(view.named(lastName(qualified)), qualified)],
    ["caseless", endingIn(view.namedCaseless(lastName(qualified)), qualified)],
    ["suffix", bySuffix(view, name, qualified)],
  ];
  for (const [how, refs] of steps) if (refs.length > 0) return { how, refs: testsLast(refs), folder: null };
  return null;
}

/** Names that look like the term; none for a term of several words. */
export function findNear(view: RepositoryView, term: string, limit: number): EntityRef[] {
  const name = lastName(plainTerm(term).replaceAll("::", ".").replace(/^.*:/, ""));
  if (name.length < 3 || name.length > 100 || /\s/.test(name)) return [];
  const scored = view.base.nearNames(name, limit).map(({ name: found, nearness: score }) => ({ found, score }));
  for (const file of view.ownFiles()) {
    for (const entity of file.source.entities) {
      const found = lastName(entity.name);
      const score = nearness(name.toLowerCase(), found);
      if (score >= 2 / 3 && !scored.some((one) => one.found === found)) scored.push({ found, score });
    }
  }
  scored.sort((a, b) => b.score - a.score);
  return testsLast(scored.slice(0, limit).flatMap(({ found }) => view.named(found))).slice(0, limit);
}

function exactId(view: RepositoryView, term: string, root: string): Found | null {
  const colon = term.lastIndexOf(":");
  const path = inTree(colon === -1 ? term : term.slice(0, colon), root);
  const file = view.file(path);
  if (file !== undefined) {
    if (colon === -1) return { how: "id", refs: [{ file, place: -1 }], folder: null };
    const name = term.slice(colon + 1);
    const refs = [...file.source.entities.entries()]
      .filter(([, entity]) => entity.name === name)
      .map(([place]) => ({ file, place }));
    return refs.length === 0 ? null : { how: "id", refs, folder: null };
  }
  const isFolder =
    path !== "" && term.includes("/") && view.files().some(({ source }) => source.path.startsWith(`${path}/`));
  return isFolder && colon === -1 ? { how: "id", refs: [], folder: path } : null;
}

/** Of equal last names, those whose whole name ends as the term does; if there are none, not all. */
function endingIn(refs: readonly EntityRef[], qualified: string): readonly EntityRef[] {
  if (!qualified.includes(".")) return refs;
  const wanted = qualified.toLowerCase();
  return refs.filter((ref) => {
    const name = (ref.file.source.entities[ref.place]?.name ?? "").toLowerCase();
    if (name === wanted || name.endsWith(`.${wanted}`)) return true;
    // `package.module.Class.method`: the rest may be the file's path.
    const rest = wanted.endsWith(`.${name}`) ? wanted.slice(0, -name.length - 1).replaceAll(".", "/") : null;
    const stem = ref.file.source.path.toLowerCase().replace(/(\/__init__)?\.[^./]+$/, "");
    return rest !== null && (stem === rest || stem.endsWith(`/${rest}`));
  });
}

function bySuffix(view: RepositoryView, term: string, qualified: string): EntityRef[] {
  const path = term.toLowerCase().replace(/^\/+/, "");
  const stem = qualified.toLowerCase().replaceAll(".", "/");
  const refs: EntityRef[] = [];
  for (const file of view.files()) {
    const own = file.source.path.toLowerCase();
    const bare = own.replace(/(\/__init__)?\.[^./]+$/, "");
    const named = own === path || own.endsWith(`/${path}`) || bare === stem || bare.endsWith(`/${stem}`);
    if (named) refs.push({ file, place: -1 });
  }
  return refs;
}

export const testsLast = (refs: readonly EntityRef[]): EntityRef[] =>
  [...refs].sort((a, b) => Number(a.file.test) - Number(b.file.test) || (refId(a) < refId(b) ? -1 : 1));
