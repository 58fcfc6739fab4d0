/**
 * A tree as a rollout has it now: an index that many share, and this rollout's own changed, added and deleted files over it. Forking
 * costs nothing; a change costs its file.
 */
import type { EntityRef, IndexedFile } from "./indexed-file.ts";
import type { RepositoryIndex } from "./repository-index.ts";
import { lastName } from "./source-file.ts";

export class RepositoryView {
  readonly base: RepositoryIndex;
  readonly #changed = new Map<string, IndexedFile | null>();
  #version = 0;

  constructor(base: RepositoryIndex) {
    this.base = base;
  }

  /** Grows with every change: what was derived from an older one is stale. */
  get version(): number {
    return this.#version;
  }
  /** Files that differ from the base. */
  get changes(): number {
    return this.#changed.size;
  }

  put(file: IndexedFile): void {
    this.#version += 1;
    if (this.base.files.get(file.source.path) === file) this.#changed.delete(file.source.path);
    else this.#changed.set(file.source.path, file);
  }

  remove(path: string): void {
    this.#version += 1;
    if (this.base.files.has(path)) this.#changed.set(path, null);
    else this.#changed.delete(path);
  }

  file(path: string): IndexedFile | undefined {
    const changed = this.#changed.get(path);
    return changed === undefined ? this.base.files.get(path) : (changed ?? undefined);
  }

  /** Changed and added ones. */
  *ownFiles(): Generator<IndexedFile> {
    for (const file of this.#changed.values()) if (file !== null) yield file;
  }

  /** By path. */
  files(): IndexedFile[] {
    const kept = [...this.base.files.values()].filter((file) => this.holds(file));
    return [...kept, ...this.ownFiles()].sort((a, b) => (a.source.path < b.source.path ? -1 : 1));
  }

  /** That very content is the file's now. */
  holds(file: IndexedFile): boolean {
    return !this.#changed.has(file.source.path) || this.#changed.get(file.source.path) === file;
  }

  named(name: string): EntityRef[] {
    return this.#lookUp(this.base.named.get(name), (own) => own === name);
  }

  namedCaseless(name: string): EntityRef[] {
    const lower = name.toLowerCase();
    return this.#lookUp(this.base.namedCaseless.get(lower), (own) => own.toLowerCase() === lower);
  }

  #lookUp(shared: readonly EntityRef[] | undefined, matches: (lastName: string) => boolean): EntityRef[] {
    const found = (shared ?? []).filter(({ file }) => this.holds(file));
    for (const file of this.ownFiles()) {
      for (const [place, entity] of file.source.entities.entries()) {
        if (matches(lastName(entity.name))) found.push({ file, place });
      }
    }
    return found;
  }
}
