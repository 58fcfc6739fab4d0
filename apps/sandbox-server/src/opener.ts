/**
 * Opens sandboxes: waits in the fair queue for a place, takes a warm one where there is one, else has the host open it. Invariants:
 * what takes room is in the directory from the moment it is placed; an opening that fails, or whose caller left, leaves nothing.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { call } from "@rolldeck/sandbox/remote/call";
import { type Deferred, deferred } from "@rolldeck/sandbox/remote/deferred";
import type { Result } from "@rolldeck/sandbox/remote/methods";
import { gone, refused } from "@rolldeck/sandbox/remote/wire-error";
import { clientLabel, imageKey, recipeKey, recipeOf, type WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import { type Directory, type Held, heldOf } from "./directory.ts";
import type { Fleet } from "./fleet.ts";
import type { Host } from "./host.ts";
import { localSpec, needsOf } from "./host-images.ts";
import type { Places } from "./places.ts";
import type { WarmPool } from "./warm-pool.ts";

export interface OpenerOptions {
  readonly directory: Directory;
  readonly fleet: Fleet;
  readonly places: Places;
  readonly warmPool: WarmPool;
  /** Sends the build contexts of a spec that the host has not got. */
  readonly sendContexts: (host: Host, spec: WireSpec, signal: AbortSignal) => Promise<void>;
  readonly nowMs: () => number;
  readonly onOpened: (how: "warm" | "cold", host: Host, waitedMs: number) => void;
}

interface Opening {
  /** The client's name. */
  readonly owner: string | null;
  readonly givenUp: AbortController;
  readonly ended: Deferred<void>;
  /** A host may hold one under this name without having said so. */
  mayBeTaken: boolean;
}

/** A host that says it is full is not asked again for so long. */
const coolMs = 1_000;
const maxTries = 4;

export class Opener {
  readonly #options: OpenerOptions;
  readonly #underWay = new Map<string, Opening>();

  constructor(options: OpenerOptions) {
    this.#options = options;
  }

  isUnderWay(id: string): boolean {
    return this.#underWay.has(id);
  }

  /**
   * Ends an opening of the client's, whose own connection may be dead without having been noticed. Resolves when it has ended, or
   * there is none of the client's. Null: whoever's it is.
   */
  async giveUp(id: string, client: string | null): Promise<void> {
    const opening = this.#underWay.get(id);
    if (opening === undefined || (client !== null && opening.owner !== client)) return;
    opening.givenUp.abort(gone(id, "it was closed while it was being opened"));
    await opening.ended.promise;
  }

  /** @throws BoundaryError("sandbox"); `full` when the queue is */
  async open(spec: WireSpec, signal: AbortSignal): Promise<Result<"open">> {
    const { directory } = this.#options;
    if (
      this.#underWay.has(spec.id) ||
      directory.find(spec.id) !== null ||
      directory.wasDropped(spec.id, spec.labels[clientLabel] ?? null)
    ) {
      throw refused(`there is, or was, a sandbox ${spec.id}`);
    }
    const owner = spec.labels[clientLabel] ?? null;
    const opening: Opening = { owner, givenUp: new AbortController(), ended: deferred(), mayBeTaken: false };
    this.#underWay.set(spec.id, opening);
    try {
      return await this.#tryHosts(spec, AbortSignal.any([signal, opening.givenUp.signal]));
    } catch (error) {
      // A host that took one for it, and was cut off before it could say so, closes it when it is back.
      if (opening.mayBeTaken) directory.drop(spec.id, "it was not opened", this.#options.nowMs());
      throw error;
    } finally {
      this.#underWay.delete(spec.id);
      opening.ended.resolve();
      this.#options.places.pump();
    }
  }

  async #tryHosts(spec: WireSpec, signal: AbortSignal): Promise<Result<"open">> {
    const { places, warmPool, nowMs } = this.#options;
    const needs = needsOf(spec);
    warmPool.opened(spec.labels[clientLabel] ?? "", recipeOf(spec));
    const askedAtMs = nowMs();
    for (let tries = 1; ; tries += 1) {
      const { host, warm } = await places.wait(
        { spec, needs, image: imageKey(spec.image), recipe: recipeKey(recipeOf(spec)) },
        signal,
      );
      const waitedMs = nowMs() - askedAtMs;
      if (warm !== null) {
        const taken = await this.#takeWarm(host, warm, spec, waitedMs, signal);
        if (taken !== null) return taken;
        continue;
      }
      try {
        return await this.#openOn(host, spec, waitedMs, signal);
      } catch (error) {
        const full = error instanceof BoundaryError && error.code === "full";
        if (full) host.coolUntilMs = nowMs() + coolMs;
        if (!full || tries >= maxTries) throw error;
      }
    }
  }

  /** Null: it was dead, or not to be had; the next try may be a cold one. */
  async #takeWarm(
    host: Host,
    warm: Held,
    spec: WireSpec,
    waitedMs: number,
    signal: AbortSignal,
  ): Promise<Result<"open"> | null> {
    const { directory, fleet, nowMs, onOpened } = this.#options;
    const held = heldOf(host.hostId, spec, nowMs());
    try {
      const { link } = fleet.linkTo(host.hostId);
      const attached = await call(link, "take", { warm: warm.id, spec: localSpec(spec) }, signal);
      directory.release(warm);
      if (signal.aborted) {
        directory.drop(spec.id, "its caller left", nowMs());
        fleet.closeOn(host, spec.id);
        throw signal.reason;
      }
      directory.add({ ...held, phase: "open", listedFromMs: nowMs() });
      onOpened("warm", host, waitedMs);
      return attached;
    } catch (error) {
      directory.drop(warm.id, "it was found dead", nowMs());
      const opening = this.#underWay.get(spec.id);
      const isKnown = error instanceof BoundaryError && error.code !== "unavailable";
      if (opening !== undefined && !isKnown) opening.mayBeTaken = true;
      // Taken or not: under neither name is it anyone's.
      fleet.closeOn(host, warm.id);
      if (signal.aborted) {
        directory.drop(spec.id, "its caller left", nowMs());
        fleet.closeOn(host, spec.id);
        throw error;
      }
      return null;
    }
  }

  async #openOn(host: Host, spec: WireSpec, waitedMs: number, signal: AbortSignal): Promise<Result<"open">> {
    const { directory, fleet, nowMs, sendContexts, onOpened } = this.#options;
    const held = directory.find(spec.id);
    if (held === null) throw new Error("an opening without a place");
    try {
      const { link } = fleet.linkTo(host.hostId);
      await sendContexts(host, spec, signal);
      const attached = await call(link, "open", { spec: localSpec(spec) }, signal);
      signal.throwIfAborted();
      held.phase = "open";
      held.listedFromMs = held.countedUntilMs = nowMs();
      host.sawImage(held.image);
      onOpened("cold", host, waitedMs);
      return attached;
    } catch (error) {
      const tellsAll = error instanceof BoundaryError && error.code !== "unavailable" && !signal.aborted;
      if (error instanceof BoundaryError && error.code === "no_image") host.lostImage(held.image);
      // The host says that nothing is left: the name may be tried elsewhere. Else what it may have made is closed when it shows.
      if (tellsAll) directory.release(held);
      else {
        directory.drop(spec.id, "it was not opened", nowMs());
        fleet.closeOn(host, spec.id);
      }
      throw error;
    }
  }
}
