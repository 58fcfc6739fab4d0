/**
 * What holds, imports, calls and inherits what. Edges are worked out when asked: a callee's name is looked for in its scope, then
 * among the imports, then among all names if few have it. The graph of a changed file is therefore never stale.
 */
import type { EntityRef, IndexedFile } from "./indexed-file.ts";
import { refId } from "./indexed-file.ts";
import type { RelationName } from "./relation-names.ts";
import type { RepositoryView } from "./repository-view.ts";
import { lastName } from "./source-file.ts";

/** Homonyms anywhere in the tree among which a bare name is still told. */
const maxHomonyms = 3;
const maxCandidates = 2000;

export class Relations {
  readonly #view: RepositoryView;
  readonly #version: number;
  #modules: ReadonlyMap<string, readonly IndexedFile[]> | undefined;
  readonly #targets = new Map<IndexedFile, readonly IndexedFile[]>();

  constructor(view: RepositoryView) {
    this.#view = view;
    this.#version = view.version;
  }

  get isStale(): boolean {
    return this.#view.version !== this.#version;
  }

  /** One step; each target once, tests last. */
  neighbours(ref: EntityRef, relation: RelationName): EntityRef[] {
    const found = this.#step(ref, relation);
    const unique = new Map(found.map((one) => [`${refId(one)}#${one.place}`, one]));
    return [...unique.values()].sort((a, b) => Number(a.file.test) - Number(b.file.test));
  }

  #step(ref: EntityRef, relation: RelationName): EntityRef[] {
    switch (relation) {
      case "contains":
        return children(ref);
      case "imports":
        return this.#importsOf(ref.file).map(whole);
      case "imported_by":
        return this.#view
          .files()
          .filter((file) => this.#importsOf(file).includes(ref.file))
          .map(whole);
      case "invokes":
        return callsOf(ref).flatMap((callee) => this.resolve(ref, callee));
      case "inherits":
        return (ref.file.source.entities[ref.place]?.bases ?? []).flatMap((base) => this.resolve(ref, base));
      case "invoked_by":
        return this.#callers(ref);
      case "inherited_by":
        return this.#heirs(ref);
    }
  }

  /** What a name means where it is written; empty when that can't be told. */
  resolve(from: EntityRef, written: string): EntityRef[] {
    const parts = namesIn(written);
    const [first] = parts;
    const last = parts.at(-1);
    if (first === undefined || last === undefined) return [];
    if (parts.length > 1 && ["self", "cls", "this", "Self", "super"].includes(first)) {
      const member = parts.length === 2 ? this.#member(from, last, 0) : [];
      return member.length > 0 ? member : this.#anywhere(last);
    }
    const near = this.#inScope(from, parts);
    if (near.length > 0) return near;
    const imported = this.#throughImports(from.file, parts);
    return imported.length > 0 ? imported : this.#anywhere(last);
  }

  #inScope({ file, place }: EntityRef, parts: readonly string[]): EntityRef[] {
    const { entities } = file.source;
    for (let around = place; ; around = entities[around]?.parent ?? -1) {
      // A method's name is no name in its class's methods.
      const scope = around === -1 ? null : entities[around];
      if (scope === undefined) return [];
      if (scope === null || scope.kind === "function") {
        const prefix = scope === null ? "" : `${scope.name}.`;
        const wanted = `${prefix}${parts.join(".")}`;
        const found = entities.findIndex((entity) => entity.name === wanted);
        if (found !== -1) return [{ file, place: found }];
      }
      if (around === -1) return [];
    }
  }

  #throughImports(file: IndexedFile, parts: readonly string[]): EntityRef[] {
    for (const { module, alias, names } of file.source.imports) {
      const [there] = names.find(([, here]) => here === parts[0]) ?? [];
      const star = names.some(([name]) => name === "*");
      if (there !== undefined || star) {
        const wanted = there === undefined ? parts : [there, ...parts.slice(1)];
        for (const target of this.#filesOf(file, module)) {
          const found = byName(target, wanted.join("."));
          if (found.length > 0) return found;
        }
        // A submodule: `from a import b`, then `b.c`.
        if (there !== undefined && parts.length > 1) {
          const deeper = this.#filesOf(file, `${module}${module.endsWith(".") ? "" : "."}${there}`);
          const found = deeper.flatMap((target) => byName(target, parts.slice(1).join(".")));
          if (found.length > 0) return found;
        }
      }
      const own = parts.join(".");
      const used = alias !== "" && own.startsWith(`${alias}.`) ? own.slice(alias.length + 1) : null;
      const found = used === null ? [] : this.#filesOf(file, module).flatMap((target) => byName(target, used));
      if (found.length > 0) return found;
    }
    return [];
  }

  /** A method of the class around, or of one it inherits from. */
  #member(from: EntityRef, name: string, depth: number): EntityRef[] {
    const { file } = from;
    const { entities } = file.source;
    let owner = entities[from.place];
    let place = from.place;
    while (owner !== undefined && owner.kind !== "class") {
      place = owner.parent;
      owner = entities[place];
    }
    const prefix = owner?.name ?? entities[from.place]?.name.replace(/\.[^.]+$/, "");
    if (prefix === undefined) return [];
    const own = byName(file, `${prefix}.${name}`);
    if (own.length > 0 || owner === undefined || depth >= 5) return own;
    for (const base of owner.bases) {
      for (const parent of this.resolve({ file, place: owner.parent }, base)) {
        if (parent.file === file && parent.place === place) continue;
        const found = this.#member(parent, name, depth + 1);
        if (found.length > 0) return found;
      }
    }
    return [];
  }

  #anywhere(name: string): EntityRef[] {
    const all = this.#view.named(name);
    const real = all.filter(({ file }) => !file.test);
    return real.length > 0 && real.length <= maxHomonyms ? real : [];
  }

  #callers(target: EntityRef): EntityRef[] {
    const entity = target.file.source.entities[target.place];
    if (entity === undefined) return [];
    const name = lastName(entity.name);
    return this.#pointing(target, callsOf, name);
  }

  #heirs(target: EntityRef): EntityRef[] {
    const entity = target.file.source.entities[target.place];
    if (entity === undefined) return [];
    const bases = (ref: EntityRef): readonly string[] => ref.file.source.entities[ref.place]?.bases ?? [];
    return this.#pointing(target, bases, lastName(entity.name));
  }

  /** Entities that name the target in one of their lists, and mean it. */
  #pointing(target: EntityRef, list: (ref: EntityRef) => readonly string[], name: string): EntityRef[] {
    const found: EntityRef[] = [];
    let tried = 0;
    for (const file of this.#view.files()) {
      for (let place = -1; place < file.source.entities.length; place++) {
        const ref = { file, place };
        for (const written of list(ref)) {
          if (!written.endsWith(name) || namesIn(written).at(-1) !== name) continue;
          if (tried++ >= maxCandidates) return found;
          const meant = this.resolve(place === -1 || list === callsOf ? ref : parentOf(ref), written);
          if (meant.some((one) => one.file === target.file && one.place === target.place)) found.push(ref);
        }
      }
    }
    return found;
  }

  #importsOf(file: IndexedFile): readonly IndexedFile[] {
    const known = this.#targets.get(file);
    if (known !== undefined) return known;
    const found = new Set<IndexedFile>();
    for (const { module, names } of file.source.imports) {
      const dot = module.endsWith(".") ? "" : ".";
      const deeper = names.flatMap(([there]) => this.#filesOf(file, `${module}${dot}${there}`));
      for (const target of [...this.#filesOf(file, module), ...deeper]) if (target !== file) found.add(target);
    }
    const targets = [...found];
    this.#targets.set(file, targets);
    return targets;
  }

  /** A Python package's own part is not what a whole name of the same ending means (`import json`). */
  #isInPackage(file: IndexedFile, wanted: string): boolean {
    const folder = stemOf(file.source.path).slice(0, -wanted.length);
    return folder !== "" && this.#view.file(`${folder}__init__.py`) !== undefined;
  }

  #filesOf(from: IndexedFile, module: string): readonly IndexedFile[] {
    this.#modules ??= modulesOf(this.#view.files());
    const { language, path } = from.source;
    for (const candidate of language.modulePaths(module)) {
      const relative = /^\.\.?\//.test(candidate);
      const wanted = relative ? joined(path, candidate) : candidate;
      if (wanted === null) continue;
      const all = this.#modules.get(wanted.replace(/\/$/, "").split("/").at(-1) ?? "") ?? [];
      const found = all.filter(
        (file) =>
          file.source.language.name === language.name &&
          isModule(file, wanted, relative) &&
          (relative || !this.#isInPackage(file, wanted)),
      );
      if (found.length > 0) return wanted.endsWith("/") ? found : [nearest(found)];
    }
    return [];
  }
}

const whole = (file: IndexedFile): EntityRef => ({ file, place: -1 });
const parentOf = ({ file, place }: EntityRef): EntityRef => ({
  file,
  place: file.source.entities[place]?.parent ?? -1,
});

const children = ({ file, place }: EntityRef): EntityRef[] =>
  [...file.source.entities.entries()]
    .filter(([, entity]) => entity.parent === place)
    .map(([at]) => ({ file, place: at }));

const callsOf = ({ file, place }: EntityRef): readonly string[] =>
  place === -1 ? file.source.calls : (file.source.entities[place]?.calls ?? []);

/** `a.b`, `a::b`, `a->b` and `a?.b` in their names, type arguments left out. */
const namesIn = (written: string): string[] =>
  written
    .replace(/<[^<>]*>|\[[^[\]]*\]|^[&*]+/g, "")
    .split(/\?\.|::|->|\./)
    .map((name) => name.trim())
    .filter((name) => /^[\p{L}_$][\p{L}\p{N}_$!]*$/u.test(name));

const byName = (file: IndexedFile, name: string): EntityRef[] =>
  [...file.source.entities.entries()].filter(([, entity]) => entity.name === name).map(([place]) => ({ file, place }));

const stemOf = (path: string): string => path.replace(/\.[^./]+$/, "");

/** By the last part of their path, and by the folder they are in. */
function modulesOf(files: readonly IndexedFile[]): Map<string, IndexedFile[]> {
  const modules = new Map<string, IndexedFile[]>();
  const add = (key: string | undefined, file: IndexedFile): void => {
    if (key === undefined) return;
    const known = modules.get(key);
    if (known) known.push(file);
    else modules.set(key, [file]);
  };
  for (const file of files) {
    const parts = stemOf(file.source.path).split("/");
    add(parts.at(-1), file);
    if (parts.at(-2) !== parts.at(-1)) add(parts.at(-2), file);
  }
  return modules;
}

function isModule(file: IndexedFile, wanted: string, relative: boolean): boolean {
  const stem = stemOf(file.source.path);
  if (wanted.endsWith("/")) {
    const folder = `${stem.slice(0, stem.lastIndexOf("/") + 1)}`;
    return folder === wanted || folder.endsWith(`/${wanted}`);
  }
  return stem === wanted || (!relative && stem.endsWith(`/${wanted}`));
}

/** The one nearest to the top; tests only if there is nothing else. */
const nearest = (files: readonly IndexedFile[]): IndexedFile =>
  files.reduce((best, file) => {
    const rank = (one: IndexedFile): number => one.source.path.split("/").length + (one.test ? 100 : 0);
    return rank(file) < rank(best) ? file : best;
  });

/** Null: it leads out of the tree. */
function joined(from: string, path: string): string | null {
  const parts = from.split("/").slice(0, -1);
  for (const part of path.split("/")) {
    if (part === "." || part === "") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.join("/");
}
