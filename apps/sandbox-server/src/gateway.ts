/**
 * The gateway's parts together, and its clock. Clients' calls come in by `client-methods` and `relayed-methods`; hosts by `fleet`.
 * Invariant: what a client is told is there or gone is what the hosts said last; while nobody knows, it is told `unavailable`.
 */
import { randomUUID } from "node:crypto";
import { call } from "@rolldeck/sandbox/remote/call";
import type { GatewayStatus, Result, WireFact } from "@rolldeck/sandbox/remote/methods";
import { sendContext } from "@rolldeck/sandbox/remote/wire-contexts";
import { refused, unavailable } from "@rolldeck/sandbox/remote/wire-error";
import { clientLabel, reservedLabel, type WireImage, type WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import { unlessAborted } from "@rolldeck/sandbox/shared/waiting";
import type { Contexts } from "./contexts.ts";
import { Directory, type Held } from "./directory.ts";
import { Fleet } from "./fleet.ts";
import type { Host } from "./host.ts";
import type { KnownHosts } from "./known-hosts.ts";
import { Measures, type Snapshot } from "./measures.ts";
import { Opener } from "./opener.ts";
import { Places } from "./places.ts";
import { StartRate } from "./start-rate.ts";
import { UsageMeter } from "./usage.ts";
import { WarmPool } from "./warm-pool.ts";

export interface GatewayOptions {
  readonly contexts: Contexts;
  readonly startsPerSecond: number;
  readonly startsPerSecondOfHost: number;
  readonly maxQueued: number;
  readonly maxReady: number;
  readonly knownHosts: KnownHosts;
  /** A host that stays away so long is lost; a gateway that starts waits so long for hosts before it calls anything gone. */
  readonly lostAfterMs: number;
  /** Names of hosts that take nothing new. */
  readonly draining: ReadonlySet<string>;
  readonly saveDraining: (names: readonly string[]) => Promise<void>;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const pumpEveryMs = 100;
const tickEveryMs = 1_000;
const settleEveryMs = 5_000;
const contextLimitMs = 600_000;

export class Gateway {
  readonly name = randomUUID();
  readonly directory: Directory;
  readonly fleet: Fleet;
  readonly places: Places;
  readonly warmPool: WarmPool;
  readonly opener: Opener;
  readonly measures: Measures;
  readonly contexts: Contexts;
  readonly #options: GatewayOptions;
  readonly #usage = new UsageMeter();
  readonly #startedAtMs: number;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #settling = new Set<Host>();
  readonly #sending = new Map<string, Promise<void>>();
  /** Names, also of hosts that are not here. */
  readonly #draining: Set<string>;

  constructor(options: GatewayOptions) {
    const { nowMs, onTrouble, contexts } = options;
    this.#options = options;
    this.#startedAtMs = nowMs();
    this.#draining = new Set(options.draining);
    this.contexts = contexts;
    const starts = new StartRate(options.startsPerSecond, nowMs());
    const directory = new Directory(this.#usage);
    const sendContexts = this.sendContexts.bind(this);
    const fleet = new Fleet({
      ...{ directory, nowMs, onTrouble, lostAfterMs: options.lostAfterMs, draining: this.#draining },
      known: options.knownHosts,
      startsPerSecond: options.startsPerSecondOfHost,
      isUnderWay: (id) => this.opener.isUnderWay(id),
      onRoom: () => this.places.pump(),
    });
    const warmPool = new WarmPool({
      ...{ directory, fleet, starts, sendContexts, nowMs, onTrouble, maxReady: options.maxReady },
      places: () => this.places,
    });
    const places = new Places({
      ...{ directory, fleet, starts, nowMs, maxQueued: options.maxQueued },
      pickWarm: (recipe) => warmPool.pick(recipe),
      makeRoom: () => warmPool.makeRoom(),
    });
    this.opener = new Opener({
      ...{ directory, fleet, places, warmPool, sendContexts, nowMs },
      onOpened: (how, host, waitedMs) => this.measures.opened(how, host.name, waitedMs),
    });
    [this.directory, this.fleet, this.places, this.warmPool] = [directory, fleet, places, warmPool];
    this.measures = new Measures(() => this.#snapshot());
  }

  start(): void {
    const every = (ms: number, work: () => void): void => {
      this.#timers.push(setInterval(work, ms));
    };
    every(pumpEveryMs, () => this.places.pump());
    every(tickEveryMs, () => {
      this.fleet.tick();
      this.warmPool.tick();
      this.directory.countUsage(this.#options.nowMs());
    });
    every(settleEveryMs, () => {
      for (const host of this.fleet.all()) void this.settle(host);
    });
  }

  /** What stands ready is closed; the rest stays: hosts tell of it when they dial again. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.warmPool.closeAll();
    for (const host of this.fleet.all()) host.link?.close("the sandbox server stops");
  }

  /** Asks a host what it has. One that can't say now is asked again; until it first did it is given nothing. */
  async settle(host: Host): Promise<void> {
    const { link } = host;
    if (link === null || this.#settling.has(host)) return;
    this.#settling.add(host);
    try {
      await this.fleet.settle(host);
    } catch (error) {
      if (host.link === link) this.#options.onTrouble(`host ${host.name} does not say what it has`, error);
    } finally {
      this.#settling.delete(host);
    }
    // It dialled again meanwhile: what was asked for came, or was lost, on its connection of before.
    if (host.link !== link) await this.settle(host);
  }

  /** Null for one that is another client's. */
  ownOf(id: string, client: string): Held | null {
    const held = this.directory.find(id);
    return held?.labels[clientLabel] === client ? held : null;
  }

  /** Of a client's own. @throws BoundaryError("sandbox"): `gone`, or `unavailable` while its host is away or nobody can know yet */
  locate(
    id: string,
    client: string,
  ): { readonly held: Held; readonly host: Host; readonly link: Host["link"] & object } {
    const held = this.ownOf(id, client);
    if (held !== null) {
      if (held.phase !== "open") throw unavailable(`sandbox ${id} is not open yet`);
      return { held, ...this.fleet.linkTo(held.hostId) };
    }
    if (this.mayYetShow(id, client))
      throw unavailable("the sandbox server does not know yet what all of its hosts have");
    throw this.directory.goneError(id);
  }

  /** A host may still come that has it, as this client's. */
  mayYetShow(id: string, client: string): boolean {
    return this.directory.find(id) === null && !this.directory.wasDropped(id, client) && !this.fleet.knowsAll();
  }

  /** As the client asks for it, with whose it is. @throws BoundaryError("sandbox", "refused") */
  ownedSpec(spec: WireSpec, client: string): WireSpec {
    const reserved = Object.keys(spec.labels).find((label) => label.startsWith(reservedLabel));
    if (reserved !== undefined) throw refused(`label ${reserved} is the sandbox server's own`);
    return { ...spec, labels: { ...spec.labels, [clientLabel]: client } };
  }

  /**
   * It ends, now or when its host comes back; another client's stays. Null: whoever's it is. Of one that is not known the host that
   * brings it says whose it is.
   */
  async close(id: string, client: string | null, signal: AbortSignal): Promise<void> {
    const { directory, fleet, places } = this;
    await this.opener.giveUp(id, client);
    const held = directory.find(id);
    if (held === null && client !== null) return directory.unwanted(id, client, this.#options.nowMs());
    if (held !== null && client !== null && held.labels[clientLabel] !== client) return;
    const host = held === null ? null : (fleet.all().find(({ hostId }) => hostId === held.hostId) ?? null);
    if (host?.link != null) await call(host.link, "close", { sandbox: id }, signal);
    directory.drop(id, "it was closed", this.#options.nowMs());
    places.pump();
  }

  /** Of one client, or of all (null). Not complete: a host may still show that has more of them. */
  list(client: string | null): Result<"list"> {
    const facts: WireFact[] = [];
    for (const held of this.directory.all()) {
      if (held.phase !== "open" || (client !== null && held.labels[clientLabel] !== client)) continue;
      const labels = Object.entries(held.labels).filter(([label]) => !label.startsWith(reservedLabel));
      const { id, createdAtMs } = held;
      facts.push({ id, labels: Object.fromEntries(labels), state: "running", createdAtMs });
    }
    return { sandboxes: facts, complete: this.fleet.knowsAll() };
  }

  /** @throws BoundaryError("sandbox", "refused") for a host that is not known */
  async drain(name: string, draining: boolean): Promise<void> {
    const host = this.fleet.named(name);
    if (host === null) throw refused(`no host is named ${name}`);
    host.draining = draining;
    if (draining) this.#draining.add(name);
    else this.#draining.delete(name);
    await this.#options.saveDraining([...this.#draining]);
    this.warmPool.tick();
    this.places.pump();
  }

  status(): GatewayStatus {
    const count = (host: Host, ...phases: Held["phase"][]): number =>
      [...this.directory.ofHost(host.hostId)].filter(({ phase }) => phases.includes(phase)).length;
    this.directory.countUsage(this.#options.nowMs());
    return {
      version: 1,
      uptimeMs: this.#options.nowMs() - this.#startedAtMs,
      hosts: this.fleet.all().map((host) => {
        const { runtime, isolation, limits, labels, maxSandboxes } = host.hello;
        return {
          ...{ hostId: host.hostId, name: host.name, state: host.state, draining: host.draining },
          ...{ runtime, isolation, limits, labels, maxSandboxes, images: host.images },
          open: count(host, "open"),
          opening: count(host, "opening"),
          warm: count(host, "warm", "taking"),
        };
      }),
      queued: this.places.queued,
      sandboxes: [...this.directory.all()].filter(({ phase }) => phase === "open" || phase === "opening").length,
      usage: this.#usage.all(),
    };
  }

  /** Sends the build contexts that the host has not got; each once, however many wait for it. */
  async sendContexts(host: Host, spec: Pick<WireSpec, "image" | "services">, signal: AbortSignal): Promise<void> {
    for (const image of [spec.image, ...spec.services.map((service) => service.image)]) {
      if (image?.kind !== "context") continue;
      const key = `${host.hostId}/${image.hash}`;
      let sending = this.#sending.get(key);
      if (sending === undefined) {
        sending = this.#sendContext(host, image).finally(() => this.#sending.delete(key));
        this.#sending.set(key, sending);
      }
      // For all who wait for it: one that leaves does not stop it, nor does it keep the place of one that left.
      await unlessAborted(sending, signal);
    }
  }

  async #sendContext(host: Host, image: WireImage & { kind: "context" }): Promise<void> {
    const { link } = this.fleet.linkTo(host.hostId);
    const signal = AbortSignal.timeout(contextLimitMs);
    if ((await call(link, "hasContext", { hash: image.hash }, signal)).has) return;
    const here = await this.contexts.find(image.hash);
    if (here === null) throw refused(`build context ${image.hash} has not been sent`);
    await sendContext(link, image.hash, here.bytes, this.contexts.read(image.hash), signal);
  }

  #snapshot(): Snapshot {
    const { hosts, queued, usage } = this.status();
    const names = new Map(hosts.map(({ hostId, name }) => [hostId, name]));
    const sum = (key: "sandboxSeconds" | "reservedCpuSeconds" | "reservedMemoryMbSeconds"): number =>
      usage.reduce((total, run) => total + run[key], 0);
    return {
      queued,
      hosts,
      sandboxes: [...this.directory.all()].map(({ hostId, image, phase }) => ({
        host: names.get(hostId) ?? hostId,
        image,
        phase,
      })),
      usage: {
        sandboxSeconds: sum("sandboxSeconds"),
        reservedCpuSeconds: sum("reservedCpuSeconds"),
        reservedMemoryMbSeconds: sum("reservedMemoryMbSeconds"),
      },
    };
  }
}
