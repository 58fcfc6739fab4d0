/**
 * What sandboxes there are, on which host and whose; and for a while, those that are no more. Invariants: an id is on one host at
 * most; what was dropped is never taken up again when a host announces it. A client's word that one should end, of which nobody knows yet
 * whose it is, counts for that client's own alone.
 */
import { gone } from "@rolldeck/sandbox/remote/wire-error";
import { imageKey, type WireRecipe, type WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import type { Reserved, UsageMeter } from "./usage.ts";

/** `opening`: not yet anyone's to use. `warm`: opened ahead. `taking`: warm, about to get an owner. */
export type Phase = "opening" | "open" | "warm" | "taking";

export interface Held extends Reserved {
  readonly id: string;
  readonly hostId: string;
  phase: Phase;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  /** Key of its recipe, of one that is warm. */
  readonly recipe: string | null;
  /** Milliseconds of the wall clock. */
  readonly createdAtMs: number;
  /** Of the monotonic clock: since when this directory has it, and until when its use is counted. */
  readonly heldSinceMs: number;
  /** The same clock: since when its host's list must have it. Before, a list that was asked for may be older than it is. */
  listedFromMs: number;
  countedUntilMs: number;
}

const rememberedMs = 3_600_000;
const maxRemembered = 100_000;

export class Directory {
  readonly #held = new Map<string, Held>();
  readonly #byHost = new Map<string, Set<Held>>();
  /** Why each ended, oldest first. */
  readonly #dropped = new Map<string, { readonly why: string; readonly atMs: number }>();
  /** What clients closed that was not known then, oldest first: by client and id. */
  readonly #unwanted = new Map<string, { readonly atMs: number }>();
  readonly #usage: UsageMeter;

  constructor(usage: UsageMeter) {
    this.#usage = usage;
  }

  get size(): number {
    return this.#held.size;
  }
  all(): Iterable<Held> {
    return this.#held.values();
  }
  find(id: string): Held | null {
    return this.#held.get(id) ?? null;
  }
  ofHost(hostId: string): ReadonlySet<Held> {
    return this.#byHost.get(hostId) ?? new Set();
  }

  add(held: Held): void {
    if (this.#held.has(held.id)) throw new Error(`sandbox ${held.id} is held already`);
    this.#held.set(held.id, held);
    const there = this.#byHost.get(held.hostId) ?? new Set();
    this.#byHost.set(held.hostId, there.add(held));
  }

  /** It is no more, or nobody's. One that is not known is remembered as well: a host may announce it later. */
  drop(id: string, why: string, nowMs: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) {
      this.#count(held, nowMs);
      this.#held.delete(id);
      this.#byHost.get(held.hostId)?.delete(held);
    }
    remember(this.#dropped, id, { why, atMs: nowMs });
  }

  /** The client wants one to end that is not known: a host that announces it, as this client's, is told so. */
  unwanted(id: string, client: string, nowMs: number): void {
    remember(this.#unwanted, unwantedKey(id, client), { atMs: nowMs });
  }

  /** Its place is free again; its name may be used once more, by the same opening on another host. */
  release(held: Held): void {
    this.#held.delete(held.id);
    this.#byHost.get(held.hostId)?.delete(held);
  }

  /** @param client whose it is, or who asks; null: nobody's */
  wasDropped(id: string, client: string | null): boolean {
    return this.#dropped.has(id) || (client !== null && this.#unwanted.has(unwantedKey(id, client)));
  }

  /** For an id that `find` has not got. */
  goneError(id: string): Error {
    return gone(id, this.#dropped.get(id)?.why ?? "there is none of this name");
  }

  /** Counts what all have used since they were last counted. */
  countUsage(nowMs: number): void {
    for (const held of this.#held.values()) this.#count(held, nowMs);
  }

  #count(held: Held, nowMs: number): void {
    if (held.phase === "open") this.#usage.add(held, Math.max(0, nowMs - held.countedUntilMs) / 1000);
    held.countedUntilMs = nowMs;
  }
}

const unwantedKey = (id: string, client: string): string => `${id} ${client}`;

/** As the newest. Those that are too old or too many go. */
function remember<T extends { readonly atMs: number }>(ended: Map<string, T>, key: string, fact: T): void {
  ended.delete(key);
  ended.set(key, fact);
  for (const [oldest, { atMs }] of ended) {
    if (ended.size <= maxRemembered && atMs > fact.atMs - rememberedMs) break;
    ended.delete(oldest);
  }
}

/** Asked for by a spec, for all its containers. */
export const memoryOf = (recipe: Pick<WireRecipe, "resources" | "services">): number =>
  [recipe, ...recipe.services].reduce((sum, { resources }) => sum + (resources.memoryMb ?? 0), 0);

/** One that is about to be opened. */
export const heldOf = (hostId: string, spec: WireSpec, nowMs: number): Held => ({
  id: spec.id,
  hostId,
  phase: "opening",
  labels: spec.labels,
  run: spec.labels.run ?? "",
  image: imageKey(spec.image),
  recipe: null,
  cpus: spec.resources.cpus ?? 0,
  memoryMb: memoryOf(spec),
  createdAtMs: Date.now(),
  heldSinceMs: nowMs,
  listedFromMs: nowMs,
  countedUntilMs: nowMs,
});
