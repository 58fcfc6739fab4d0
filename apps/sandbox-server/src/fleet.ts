/**
 * The hosts, and what happens when one comes, goes silent or stays away. A host whose connection ended is `away`, and what it holds
 * `unavailable`; after `lostAfterMs` it is `lost`, and what it held `gone`. One that comes back says what it has: what is wanted
 * goes on, the rest is closed. Invariant: a host is given nothing new before that is settled.
 */
import { call } from "@rolldeck/sandbox/remote/call";
import type { HostHello } from "@rolldeck/sandbox/remote/frames";
import type { Link } from "@rolldeck/sandbox/remote/link";
import type { HeldFact } from "@rolldeck/sandbox/remote/methods";
import { refused, unavailable } from "@rolldeck/sandbox/remote/wire-error";
import type { Directory, Held } from "./directory.ts";
import { Host } from "./host.ts";

export interface FleetOptions {
  readonly directory: Directory;
  readonly startsPerSecond: number;
  readonly lostAfterMs: number;
  /** Names of hosts that take nothing new. */
  readonly draining: ReadonlySet<string>;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** Being opened or taken this moment: not to be met by chance. */
  readonly isUnderWay: (id: string) => boolean;
  /** Room may have come free, or a host come. */
  readonly onRoom: () => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const listLimitMs = 30_000;
const closeLimitMs = 60_000;
/** Hosts that are lost are remembered so long, drained ones stay drained. */
const forgottenAfterMs = 24 * 3_600_000;
const maxHosts = 1_000;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #hosts = new Map<string, Host>();

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  all(): readonly Host[] {
    return [...this.#hosts.values()];
  }
  named(name: string): Host | null {
    return this.all().find((host) => host.name === name) ?? null;
  }

  /** A host that has introduced itself. @throws BoundaryError("sandbox", "refused") */
  join(hello: HostHello, link: Link): Host {
    const namesake = this.named(hello.name);
    if (namesake !== null && namesake.hostId !== hello.hostId && namesake.state !== "lost") {
      throw refused(`another host is named ${hello.name}: give this one another name`);
    }
    if (namesake?.state === "lost" && namesake.hostId !== hello.hostId) this.#hosts.delete(namesake.hostId);
    let host = this.#hosts.get(hello.hostId);
    if (host === undefined) {
      if (this.#hosts.size >= maxHosts) throw refused(`this sandbox server has ${maxHosts} hosts`);
      host = new Host(hello, this.#options.startsPerSecond, this.#options.nowMs());
      host.draining = this.#options.draining.has(hello.name);
      this.#hosts.set(host.hostId, host);
    }
    // Its connection of before may not have been noticed to be dead.
    const before = host.link;
    host.hello = hello;
    host.link = link;
    host.listed = false;
    host.awaySinceMs = null;
    host.lost = false;
    for (const image of hello.images) host.sawImage(image);
    before?.close("the host has dialled again");
    return host;
  }

  /** Its connection ended. One that has another by now is not away. */
  left(host: Host, link: Link): void {
    if (host.link !== link) return;
    host.link = null;
    host.listed = false;
    host.awaySinceMs = this.#options.nowMs();
  }

  /** The connection to the host, for what lives there. @throws BoundaryError("sandbox", "unavailable") while it is away */
  linkTo(hostId: string): { readonly host: Host; readonly link: Link } {
    const host = this.#hosts.get(hostId);
    if (host?.link == null) throw unavailable(`host ${host?.name ?? hostId} is away`);
    return { host, link: host.link };
  }

  /** Asks a host what it has and makes the directory say the same; what nobody wants is closed there. */
  async settle(host: Host): Promise<void> {
    const { directory, nowMs } = this.#options;
    const link = host.link;
    if (link === null) return;
    const askedAtMs = nowMs();
    const { sandboxes } = await call(link, "held", {}, AbortSignal.timeout(listLimitMs));
    if (host.link !== link) return;
    const there = new Set(sandboxes.map(({ id }) => id));
    for (const held of [...directory.ofHost(host.hostId)]) {
      const settled = held.phase === "open" || held.phase === "warm";
      if (settled && held.listedFromMs < askedAtMs && !there.has(held.id)) {
        directory.drop(held.id, "it ended on its host", nowMs());
      }
    }
    for (const fact of sandboxes) this.#meet(host, fact, askedAtMs);
    host.listed = true;
    this.#options.onRoom();
  }

  #meet(host: Host, fact: HeldFact, askedAtMs: number): void {
    const { directory, nowMs, isUnderWay } = this.#options;
    if (isUnderWay(fact.id)) return;
    const held = directory.find(fact.id);
    if (held !== null && held.hostId === host.hostId) {
      if (fact.state === "running" || held.listedFromMs >= askedAtMs) return;
      directory.drop(fact.id, "it ended on its host", nowMs());
    }
    const wanted = held === null && fact.state === "running" && !fact.warm && !directory.wasDropped(fact.id);
    if (wanted) directory.add(adopted(host.hostId, fact, nowMs()));
    else this.closeOn(host, fact.id);
  }

  /** Closes there what nobody holds. A failure leaves it to the next settling, or to its lease. */
  closeOn(host: Host, id: string): void {
    if (host.link === null) return;
    call(host.link, "close", { sandbox: id }, AbortSignal.timeout(closeLimitMs)).catch((error: unknown) =>
      this.#options.onTrouble(`sandbox ${id} on ${host.name} was not closed`, error),
    );
  }

  /** What was held on hosts that stayed away is gone. */
  tick(): void {
    const { directory, nowMs, lostAfterMs } = this.#options;
    for (const host of this.all()) {
      if (host.awaySinceMs === null) continue;
      const awayMs = nowMs() - host.awaySinceMs;
      if (awayMs > forgottenAfterMs) this.#hosts.delete(host.hostId);
      if (host.lost || awayMs < lostAfterMs) continue;
      host.lost = true;
      for (const held of [...directory.ofHost(host.hostId)]) {
        directory.drop(held.id, `its host ${host.name} was lost`, nowMs());
      }
    }
  }
}

/** Of a host that knows more than this process, which has started anew. */
const adopted = (hostId: string, fact: HeldFact, nowMs: number): Held => ({
  id: fact.id,
  hostId,
  phase: "open",
  labels: fact.labels,
  run: fact.labels.run ?? "",
  image: fact.image ?? "",
  recipe: null,
  cpus: fact.cpus ?? 0,
  memoryMb: fact.memoryMb ?? 0,
  createdAtMs: fact.createdAtMs,
  heldSinceMs: nowMs,
  listedFromMs: nowMs,
  countedUntilMs: nowMs,
});
