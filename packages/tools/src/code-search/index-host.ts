/**
 * The trees of many rollouts in one thread. Equal contents are parsed once and equal trees indexed once, whichever rollout brings
 * them; a rollout's own changes cost their files. Invariants: memory stays under a limit (what was not used longest goes, and its
 * rollouts bring their trees again), and an answer is never older than the listing it was asked with.
 */
import { createHash } from "node:crypto";
import { answerSearch } from "./answer-search.ts";
import { type IndexedFile, indexFile } from "./indexed-file.ts";
import { readTar } from "./read-tar.ts";
import { RepositoryIndex } from "./repository-index.ts";
import { RepositoryView } from "./repository-view.ts";
import type { SearchRequest } from "./search-request.ts";
import { type ListedFile, type Listing, parseHashes, parseListing } from "./tree-listing.ts";

/** Files whose content is asked for. */
export type Needed = readonly { readonly path: string; readonly bytes: number }[];

interface Tree {
  readonly key: string;
  readonly index: RepositoryIndex;
  /** By hash and path; those of one rollout alone have none. */
  readonly contents: ReadonlyMap<string, IndexedFile>;
}
interface Rollout {
  readonly root: string;
  /** As of the contents that are here. */
  stamps: ReadonlyMap<string, ListedFile>;
  /** As of the contents that are asked for. */
  listed: ReadonlyMap<string, ListedFile>;
  needed: readonly ListedFile[];
  leftOut: number;
  /** Null until its files have come. */
  open: { readonly view: RepositoryView; readonly tree: Tree } | null;
  /** While they come: what is known, and the hashes that name the rest. */
  readonly arriving: Map<string, IndexedFile>;
  readonly hashes: Map<string, string>;
}

/** Changed files of a rollout from which on an index of its own is cheaper. */
const maxChanges = 300;
const maxRollouts = 2000;
/** How long the thread works before it lets others in. */
const sliceMs = 20;

export class IndexHost {
  readonly #maxBytes: number;
  /** The least used first. */
  readonly #trees = new Map<string, Tree>();
  readonly #rollouts = new Map<string, Rollout>();

  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#maxBytes = maxBytes;
  }

  /** Null: this rollout's tree is not here. Deleted files are gone from now on; the rest of the changes must be supplied. */
  refresh(id: string, listing: Uint8Array): Needed | null {
    const rollout = this.#rollouts.get(id);
    if (rollout?.open == null) return null;
    this.#use(id, rollout);
    const { files, leftOut } = parseListing(listing);
    const { view } = rollout.open;
    for (const path of rollout.stamps.keys()) if (!files.has(path)) view.remove(path);
    rollout.needed = [...files.values()].filter(({ path, stamp }) => rollout.stamps.get(path)?.stamp !== stamp);
    rollout.listed = files;
    rollout.leftOut = leftOut;
    rollout.arriving.clear();
    return rollout.needed.map(({ path, bytes }) => ({ path, bytes }));
  }

  /** A rollout's first listing, with hashes: what is not known from other rollouts must be supplied. */
  open(id: string, root: string, listing: Uint8Array, hashing: Uint8Array): Needed {
    const hashes = parseHashes(hashing);
    const { files, leftOut }: Listing = parseListing(listing);
    const known = new Map<string, IndexedFile>();
    for (const tree of this.#trees.values()) for (const [key, file] of tree.contents) known.set(key, file);
    const arriving = new Map<string, IndexedFile>();
    const needed: ListedFile[] = [];
    for (const file of files.values()) {
      const hash = hashes.get(file.path);
      const content = hash === undefined ? undefined : known.get(contentKey(hash, file.path));
      if (content === undefined) needed.push(file);
      else arriving.set(file.path, content);
    }
    this.#use(id, { root, stamps: new Map(), listed: files, needed, leftOut, open: null, arriving, hashes });
    return needed.map(({ path, bytes }) => ({ path, bytes }));
  }

  /** Contents as a tar. @throws when the rollout is not here */
  async supply(id: string, tar: Uint8Array): Promise<void> {
    const rollout = this.#rollout(id);
    let sliceEnd = performance.now() + sliceMs;
    for (const { path, bytes } of readTar(tar)) {
      // Others are given a content by its hash: what came is not what was hashed when the file changed, or the sandbox lied.
      const hash = rollout.hashes.get(path);
      if (hash !== undefined && createHash("sha1").update(bytes).digest("hex") !== hash) rollout.hashes.delete(path);
      const file = await indexFile(path, bytes);
      if (file !== null) rollout.arriving.set(path, file);
      if (performance.now() < sliceEnd) continue;
      await new Promise((resolve) => setImmediate(resolve));
      sliceEnd = performance.now() + sliceMs;
    }
  }

  /** All that was needed has been supplied. */
  settle(id: string): void {
    const rollout = this.#rollout(id);
    const { arriving, open } = rollout;
    rollout.stamps = rollout.listed;
    if (open === null) {
      const tree = this.#treeOf(id, rollout);
      rollout.open = { view: new RepositoryView(tree.index), tree };
    } else {
      for (const { path } of rollout.needed) {
        const file = arriving.get(path);
        // What did not come is not there any more, or no text.
        if (file === undefined) open.view.remove(path);
        else open.view.put(file);
      }
      if (open.view.changes > maxChanges) rollout.open = this.#rebased(id, open.view);
    }
    arriving.clear();
    this.#evict(id);
  }

  /** @throws when the rollout's tree is not here */
  async search(id: string, request: SearchRequest, isStopped: () => boolean): Promise<string> {
    const rollout = this.#rollout(id);
    if (rollout.open === null) throw new Error(`the tree of ${id} has not come yet`);
    const { view } = rollout.open;
    const answer = await answerSearch({ view, root: rollout.root, isStopped }, request);
    if (rollout.leftOut === 0) return answer;
    return `${answer}\n\nNote: ${rollout.leftOut} source files are too large, or too many, and were not searched.`;
  }

  /** For tests: how much is here. */
  facts(): { readonly trees: number; readonly rollouts: number; readonly bytes: number } {
    return { trees: this.#trees.size, rollouts: this.#rollouts.size, bytes: this.#bytes() };
  }

  #rollout(id: string): Rollout {
    const rollout = this.#rollouts.get(id);
    if (rollout === undefined) throw new Error(`no rollout ${id} is here`);
    return rollout;
  }

  /** The same files and contents make the same tree. */
  #treeOf(id: string, rollout: Rollout): Tree {
    const contents = new Map<string, IndexedFile>();
    const hasher = createHash("sha256");
    const files = [...rollout.arriving].sort(([a], [b]) => (a < b ? -1 : 1));
    let shared = true;
    for (const [path, file] of files) {
      const hash = rollout.hashes.get(path);
      shared &&= hash !== undefined;
      if (hash !== undefined) contents.set(contentKey(hash, path), file);
      hasher.update(`${hash ?? ""} ${path}\0`);
    }
    const key = shared ? hasher.digest("hex") : `rollout ${id}`;
    const known = this.#trees.get(key);
    const tree = known ?? { key, index: new RepositoryIndex(files.map(([, file]) => file)), contents };
    this.#trees.delete(key);
    this.#trees.set(key, tree);
    return tree;
  }

  #rebased(id: string, view: RepositoryView): { readonly view: RepositoryView; readonly tree: Tree } {
    const key = `rollout ${id}`;
    const tree: Tree = { key, index: new RepositoryIndex(view.files()), contents: new Map() };
    this.#trees.delete(key);
    this.#trees.set(key, tree);
    return { view: new RepositoryView(tree.index), tree };
  }

  #use(id: string, rollout: Rollout): void {
    this.#rollouts.delete(id);
    this.#rollouts.set(id, rollout);
    const { open } = rollout;
    if (open === null) return;
    this.#trees.delete(open.tree.key);
    this.#trees.set(open.tree.key, open.tree);
  }

  #bytes(): number {
    const seen = new Set<IndexedFile>();
    let bytes = 0;
    const add = (file: IndexedFile): void => {
      if (seen.has(file)) return;
      seen.add(file);
      bytes += file.bytes;
    };
    for (const { index } of this.#trees.values()) {
      bytes += index.ownBytes;
      for (const file of index.files.values()) add(file);
    }
    for (const { open } of this.#rollouts.values()) for (const file of open?.view.ownFiles() ?? []) add(file);
    return bytes;
  }

  /** The rollout that was just served stays. */
  #evict(serving: string): void {
    const forget = (id: string): void => {
      const rollout = this.#rollouts.get(id);
      this.#rollouts.delete(id);
      if (rollout?.open?.tree.key === `rollout ${id}`) this.#trees.delete(`rollout ${id}`);
    };
    for (const id of this.#rollouts.keys()) {
      if (this.#rollouts.size <= maxRollouts) break;
      if (id !== serving) forget(id);
    }
    const kept = this.#rollouts.get(serving)?.open?.tree;
    for (const tree of [...this.#trees.values()]) {
      if (this.#bytes() <= this.#maxBytes) return;
      if (tree === kept) continue;
      this.#trees.delete(tree.key);
      for (const [id, rollout] of this.#rollouts) if (rollout.open?.tree === tree) this.#rollouts.delete(id);
    }
  }
}

const contentKey = (hash: string, path: string): string => `${hash} ${path}`;
