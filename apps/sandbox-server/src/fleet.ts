/**
 * The hosts, and what happens when one comes, goes silent or stays away. A host whose connection ended is `away`, and what it holds
 * `unavailable`; after `lostAfterMs` it is `lost`, and what it held `gone`. One that comes back says what it has: what is wanted
 * goes on, the rest is closed. Invariants: a host is given nothing new before that is settled, and written down; as long as one may
 * come, or has come, that has not said what it has, `knowsAll` says no.
 */
import { call } from "@rolldeck/sandbox/remote/call";
import type { HostHello } from "@rolldeck/sandbox/remote/frames";
import type { Link } from "@rolldeck/sandbox/remote/link";
import type { HeldFact } from "@rolldeck/sandbox/remote/methods";
import { refused, unavailable } from "@rolldeck/sandbox/remote/wire-error";
import { clientLabel } from "@rolldeck/sandbox/remote/wire-spec";
import type { Directory, Held } from "./directory.ts";
import { Host } from "./host.ts";
import type { KnownHosts } from "./known-hosts.ts";

export interface FleetOptions {
  readonly directory: Directory;
  readonly startsPerSecond: number;
  readonly lostAfterMs: number;
  readonly known: KnownHosts;
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
/** For a host's process to show that it is there. */
const answerMs = 3_000;
/** Hosts that are lost are remembered so long, drained ones stay drained. */
const forgottenAfterMs = 24 * 3_600_000;
const maxHosts = 1_000;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #startedAtMs: number;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#startedAtMs = options.nowMs();
  }

  /** Whether no sandbox can live on a host of which this process has not heard; one that stays away so long is given up. */
  knowsAll(): boolean {
    const { known, nowMs, lostAfterMs } = this.#options;
    const isLate = (sinceMs: number): boolean => nowMs() - sinceMs >= lostAfterMs;
    const allCame = known.before !== null && [...known.before].every((hostId) => this.#hosts.has(hostId));
    if (!allCame && !isLate(this.#startedAtMs)) return false;
    return this.all().every((host) => host.wasListed || host.lost || isLate(host.joinedAtMs));
  }

  all(): readonly Host[] {
    return [...this.#hosts.values()];
  }
  named(name: string): Host | null {
    return this.all().find((host) => host.name === name) ?? null;
  }

  /**
   * To be asked before a host joins. One process at a time is a host: a second one that bears its id (started twice, or a copy of its
   * state folder) would close what the first one has, and the other way round, for as long as both dial.
   * @throws BoundaryError("sandbox", "refused") when the other one answers
   */
  async makeWay(hello: HostHello): Promise<void> {
    for (;;) {
      const host = this.#hosts.get(hello.hostId);
      if (host?.link == null || host.hello.bootId === hello.bootId) return;
      const { link } = host;
      if (await link.answers(answerMs)) {
        throw refused(
          `host ${host.name} is here already, as another process with the same state folder or a copy of it`,
        );
      }
      link.close("another process is this host now");
    }
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
      const { startsPerSecond, nowMs, onTrouble } = this.#options;
      host = new Host(hello, startsPerSecond, nowMs(), onTrouble);
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
    const { directory, known, nowMs } = this.#options;
    const link = host.link;
    if (link === null) return;
    await known.add(host.hostId);
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
    host.listed = host.wasListed = true;
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
    const dropped = directory.wasDropped(fact.id, fact.labels[clientLabel] ?? null);
    const wanted = held === null && fact.state === "running" && !fact.warm && !dropped;
    if (wanted) directory.add(adopted(host.hostId, fact, nowMs()));
    else this.closeOn(host, fact.id);
  }

  /** Closes there what nobody holds. A failure leaves it to the next settling, or to its lease. */
  closeOn(host: Host, id: string): void {
    host.closings.add(id);
  }

  /** What was held on hosts that stayed away is gone. */
  tick(): void {
    const { directory, known, nowMs, lostAfterMs } = this.#options;
    if (nowMs() - this.#startedAtMs >= lostAfterMs) {
      for (const hostId of known.before ?? []) if (!this.#hosts.has(hostId)) this.#expectNoMore(hostId);
    }
    for (const host of this.all()) {
      if (host.awaySinceMs === null) continue;
      const awayMs = nowMs() - host.awaySinceMs;
      if (awayMs > forgottenAfterMs) this.#hosts.delete(host.hostId);
      if (host.lost || awayMs < lostAfterMs) continue;
      host.lost = true;
      this.#expectNoMore(host.hostId);
      for (const held of [...directory.ofHost(host.hostId)]) {
        directory.drop(held.id, `its host ${host.name} was lost`, nowMs());
      }
    }
  }

  /** Costs a later start a wait where it fails, and no more. */
  #expectNoMore(hostId: string): void {
    const { known, onTrouble } = this.#options;
    known.remove(hostId).catch((error: unknown) => onTrouble("the list of hosts was not kept", error));
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
