/**
 * Who gets a place next: the queue, the hosts' room and the start rates together. Invariants: the directory says who took which
 * place before anyone else is placed; one that waits long is not overtaken, so that big ones have their turn.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { refused } from "@rolldeck/sandbox/remote/wire-error";
import { noImage, type WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import { type Directory, type Held, heldOf } from "./directory.ts";
import { FairQueue, type Waiting } from "./fair-queue.ts";
import type { Fleet } from "./fleet.ts";
import type { Host } from "./host.ts";
import { couldEver, type HostView, mayLackRoom, type Needs, place } from "./placement.ts";
import type { StartRate } from "./start-rate.ts";

export interface PlacesOptions {
  readonly directory: Directory;
  readonly fleet: Fleet;
  readonly starts: StartRate;
  readonly maxQueued: number;
  readonly nowMs: () => number;
  /** A warm one of the recipe, which the caller then has; null: none. */
  readonly pickWarm: (recipe: string) => Held | null;
  /** Closes a warm one, if there is any, so that others have its room. */
  readonly makeRoom: () => void;
}

export interface Request {
  readonly spec: WireSpec;
  readonly needs: Needs;
  readonly image: string;
  readonly recipe: string;
}

/** With a warm one the place is that one's; else the directory holds the spec's id as `opening`. */
export interface Place {
  readonly host: Host;
  readonly warm: Held | null;
}

interface Waiter {
  readonly request: Request;
  readonly give: (place: Place) => void;
}

/** One that has waited so long is served before any that came later. */
const patienceMs = 60_000;

export class Places {
  readonly #options: PlacesOptions;
  readonly #queue: FairQueue<Waiter>;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#queue = new FairQueue(options.maxQueued);
  }

  get queued(): number {
    return this.#queue.size;
  }

  /** @throws BoundaryError("sandbox", "full") when too many wait; "refused" when no host could ever hold it; the signal's reason */
  async wait(request: Request, signal: AbortSignal): Promise<Place> {
    signal.throwIfAborted();
    // A host that is lost now may come back: only what no known host could hold is refused.
    const known = this.#viewsOf(this.#options.fleet.all(), request.image);
    if (known.length > 0 && !couldEver(known, request.needs)) throw refused(whyNever(request.needs));
    return await new Promise<Place>((resolve, reject) => {
      const onAbort = (): void => {
        if (this.#queue.remove(waiting)) reject(signal.reason);
      };
      const give = (given: Place): void => {
        signal.removeEventListener("abort", onAbort);
        resolve(given);
      };
      const waiting: Waiting<Waiter> = {
        run: request.spec.labels.run ?? "",
        item: { request, give },
        sinceMs: this.#options.nowMs(),
      };
      if (!this.#queue.add(waiting)) {
        const message = `${this.#queue.size} sandboxes wait already`;
        reject(new BoundaryError("sandbox", "full", message, { retryable: true, retryAfterMs: 1000 }));
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      this.pump();
    });
  }

  /** Gives out what there is. To be called when room came free, a host came, or time passed. */
  pump(): void {
    while (this.#queue.size > 0) {
      const given: { place: Place | null; lacksRoom: boolean } = { place: null, lacksRoom: false };
      const served = this.#queue.next((waiting) => {
        if (!this.#mayServe(waiting)) return false;
        const { request } = waiting.item;
        given.place = this.#placeFor(request);
        if (given.place === null) given.lacksRoom ||= mayLackRoom(this.#views(request.image), request.needs);
        return given.place !== null;
      });
      if (served === null || given.place === null) {
        if (given.lacksRoom && this.#options.starts.ready(this.#options.nowMs())) this.#options.makeRoom();
        return;
      }
      served.item.give(given.place);
    }
  }

  #mayServe(waiting: Waiting<Waiter>): boolean {
    const oldest = this.#queue.oldest();
    if (oldest === null || oldest === waiting || this.#options.nowMs() - oldest.sinceMs < patienceMs) return true;
    // One that no host could hold any more must not stop the others.
    return !couldEver(this.#views(oldest.item.request.image), oldest.item.request.needs);
  }

  #placeFor(request: Request): Place | null {
    const { directory, fleet, starts, nowMs, pickWarm } = this.#options;
    const warm = pickWarm(request.recipe);
    if (warm !== null) return { host: fleet.linkTo(warm.hostId).host, warm };
    const host = this.freeHost(request.image, request.needs);
    if (host === null) return null;
    starts.take(nowMs());
    host.starts.take(nowMs());
    directory.add(heldOf(host.hostId, request.spec, nowMs()));
    return { host, warm: null };
  }

  /** Where one could start now, the rates included; null: nowhere. */
  freeHost(image: string, needs: Needs): Host | null {
    if (!this.#options.starts.ready(this.#options.nowMs())) return null;
    const hostId = place(this.#views(image), needs);
    return hostId === null ? null : (this.#options.fleet.all().find((host) => host.hostId === hostId) ?? null);
  }

  /** Of hosts that are not lost. */
  #views(image: string): HostView[] {
    const there = this.#options.fleet.all().filter((host) => !host.lost);
    return this.#viewsOf(there, image);
  }

  #viewsOf(hosts: readonly Host[], image: string): HostView[] {
    const { directory, nowMs } = this.#options;
    return hosts.map((host) => {
      const there = directory.ofHost(host.hostId);
      let usedMemoryMb = 0;
      for (const held of there) usedMemoryMb += held.memoryMb;
      return {
        hostId: host.hostId,
        accepting: host.accepting(nowMs()),
        mayStart: host.starts.ready(nowMs()),
        maxSandboxes: host.hello.maxSandboxes,
        memoryMb: host.hello.memoryMb,
        sandboxes: there.size,
        usedMemoryMb,
        // Where there is none to have, no host is ahead of another.
        hasImage: image === noImage || host.hasImage(image),
        takesImages: host.hello.runtime !== "process",
      };
    });
  }
}

function whyNever({ memoryMb, onlyHost, withImage }: Needs): string {
  if (onlyHost !== null) return `the only host with this image, ${onlyHost}, is not there or has no ${memoryMb} MiB`;
  if (!withImage) return "no host gives sandboxes without an image, or none with that much memory";
  return `no host makes sandboxes from images with ${memoryMb} MiB of memory`;
}
