/**
 * What sandboxes there are, on which host and whose; and for a while, those that are no more. Invariants: an id is on one host at
 * most; what was dropped is never taken up again when a host announces it.
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
    this.#dropped.delete(id);
    this.#dropped.set(id, { why, atMs: nowMs });
    for (const [oldest, { atMs }] of this.#dropped) {
      if (this.#dropped.size <= maxRemembered && atMs > nowMs - rememberedMs) break;
      this.#dropped.delete(oldest);
    }
  }

  /** Its place is free again; its name may be used once more, by the same opening on another host. */
  release(held: Held): void {
    this.#held.delete(held.id);
    this.#byHost.get(held.hostId)?.delete(held);
  }

  wasDropped(id: string): boolean {
    return this.#dropped.has(id);
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
