/**
 * Sandboxes opened ahead, by recipe: as many as are expected, on hosts with room that nobody waits for. Invariants: a warm sandbox is
 * taken once, and by nobody if it is not alive; it is closed when it is old, not wanted or in the way.
 */
import { randomBytes } from "node:crypto";
import { sandboxId } from "@rolldeck/contracts/ports/sandbox";
import { call } from "@rolldeck/sandbox/remote/call";
import { imageKey, recipeKey, type WireRecipe, type WireSpec, warmLabel } from "@rolldeck/sandbox/remote/wire-spec";
import { Demand } from "./demand.ts";
import { type Directory, type Held, heldOf } from "./directory.ts";
import type { Fleet } from "./fleet.ts";
import type { Host } from "./host.ts";
import { localSpec, needsOf } from "./host-images.ts";
import type { Places } from "./places.ts";
import type { StartRate } from "./start-rate.ts";

export interface WarmPoolOptions {
  readonly directory: Directory;
  readonly fleet: Fleet;
  readonly places: () => Places;
  readonly starts: StartRate;
  /** Of one recipe; 0 = none are opened ahead. */
  readonly maxReady: number;
  readonly sendContexts: (host: Host, spec: WireSpec, signal: AbortSignal) => Promise<void>;
  readonly nowMs: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const leaseMs = 60_000;
const renewEveryMs = 15_000;
const closeLimitMs = 30_000;
/** Older ones are closed. It is added to their life, so that who takes one has all of what was asked for. */
const maxAgeMs = 600_000;
const openLimitMs = 300_000;
const maxRecipes = 200;
/** A recipe that could not be opened ahead is left alone so long. */
const sulkMs = 60_000;

interface Line {
  readonly recipe: WireRecipe;
  readonly demand: Demand;
  sulksUntilMs: number;
}

export class WarmPool {
  readonly #options: WarmPoolOptions;
  /** By recipe key, the longest unused first. */
  readonly #lines = new Map<string, Line>();
  #renewedAtMs = 0;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  /** The client opens one of this recipe, from here or not. */
  opened(client: string, recipe: WireRecipe): void {
    this.#line(recipe).demand.opened(client, this.#options.nowMs());
  }

  /** The client will open so many more within the time. */
  expect(client: string, recipe: WireRecipe, count: number, forMs: number): void {
    this.#line(recipe).demand.tell(client, count, this.#options.nowMs() + forMs);
    this.tick();
  }

  /** The oldest that is ready, which is then the caller's to take. */
  pick(recipe: string): Held | null {
    const { nowMs } = this.#options;
    for (const held of this.#ready(recipe)) {
      if (!this.#usable(held, nowMs())) continue;
      held.phase = "taking";
      return held;
    }
    return null;
  }

  /** Somebody waits for room: the oldest warm one gives its. */
  makeRoom(): void {
    const [oldest] = this.#warm();
    if (oldest !== undefined) void this.#close(oldest, "its room was needed");
  }

  /** Resolves when all are closed, or could not be. */
  async closeAll(): Promise<void> {
    await Promise.all(this.#warm().map((held) => this.#close(held, "the sandbox server stops")));
  }

  /** Once a second: closes, opens and renews. */
  tick(): void {
    const { nowMs, maxReady, places } = this.#options;
    const now = nowMs();
    for (const held of this.#warm()) if (!this.#usable(held, now)) void this.#close(held, "it stood ready too long");
    for (const [key, line] of this.#lines) {
      const target = line.demand.target(now, maxReady);
      const ready = [...this.#ready(key)];
      const coming = [...this.#options.directory.all()].filter(
        (held) => held.phase === "opening" && held.recipe === key,
      );
      for (const held of ready.slice(0, Math.max(0, ready.length - target)))
        void this.#close(held, "it was not wanted");
      if (places().queued > 0 || line.sulksUntilMs > now) continue;
      for (let have = ready.length + coming.length; have < target; have += 1) {
        if (!this.#begin(key, line)) break;
      }
    }
    if (now - this.#renewedAtMs >= renewEveryMs) {
      this.#renewedAtMs = now;
      this.#renew();
    }
  }

  /** False: there is no room now. */
  #begin(key: string, line: Line): boolean {
    const { directory, places, starts, nowMs } = this.#options;
    const { recipe } = line;
    const needs = needsOf(recipe);
    const host = places().freeHost(imageKey(recipe.image), needs);
    if (host === null) return false;
    starts.take(nowMs());
    host.starts.take(nowMs());
    const spec: WireSpec = {
      ...recipe,
      id: sandboxId(randomBytes(20)),
      labels: { [warmLabel]: key },
      leaseMs,
      maxLifeMs: recipe.maxLifeMs + maxAgeMs,
    };
    const held: Held = { ...heldOf(host.hostId, spec, nowMs()), recipe: key };
    directory.add(held);
    this.#open(host, held, spec).catch((error: unknown) => {
      line.sulksUntilMs = nowMs() + sulkMs;
      directory.drop(held.id, "it was not opened", nowMs());
      this.#options.fleet.closeOn(host, held.id);
      this.#options.onTrouble(`no sandbox could be opened ahead of ${held.image}`, error);
    });
    return true;
  }

  async #open(host: Host, held: Held, spec: WireSpec): Promise<void> {
    const { fleet, sendContexts, places, nowMs } = this.#options;
    const signal = AbortSignal.timeout(openLimitMs);
    await sendContexts(host, spec, signal);
    await call(fleet.linkTo(host.hostId).link, "open", { spec: localSpec(spec) }, signal);
    host.sawImage(held.image);
    held.phase = "warm";
    held.listedFromMs = nowMs();
    places().pump();
  }

  #usable(held: Held, nowMs: number): boolean {
    const host = this.#options.fleet.all().find(({ hostId }) => hostId === held.hostId);
    return host?.accepting(nowMs) === true && nowMs - held.heldSinceMs < maxAgeMs;
  }

  #renew(): void {
    const byHost = new Map<string, string[]>();
    for (const { id, hostId } of this.#warm()) byHost.set(hostId, [...(byHost.get(hostId) ?? []), id]);
    for (const [hostId, sandboxes] of byHost) {
      const link = this.#options.fleet.all().find((host) => host.hostId === hostId)?.link;
      if (link == null) continue;
      // One that could not be renewed is found dead when it is taken, or missing when its host is asked.
      call(link, "renew", { sandboxes, leaseMs }, AbortSignal.timeout(renewEveryMs)).catch((error: unknown) =>
        this.#options.onTrouble("warm sandboxes were not renewed", error),
      );
    }
  }

  async #close(held: Held, why: string): Promise<void> {
    const { directory, fleet, nowMs, places } = this.#options;
    const host = fleet.all().find(({ hostId }) => hostId === held.hostId);
    if (host?.link == null) {
      directory.drop(held.id, why, nowMs());
      return;
    }
    // Its room is free when it is gone.
    held.phase = "taking";
    try {
      await call(host.link, "close", { sandbox: held.id }, AbortSignal.timeout(closeLimitMs));
    } catch (error) {
      this.#options.onTrouble(`warm sandbox ${held.id} was not closed`, error);
    }
    directory.drop(held.id, why, nowMs());
    places().pump();
  }

  #warm(): Held[] {
    return [...this.#options.directory.all()].filter((held) => held.phase === "warm");
  }
  #ready(recipe: string): Held[] {
    return this.#warm().filter((held) => held.recipe === recipe);
  }

  #line(recipe: WireRecipe): Line {
    const key = recipeKey(recipe);
    const line = this.#lines.get(key) ?? { recipe, demand: new Demand(), sulksUntilMs: 0 };
    this.#lines.delete(key);
    this.#lines.set(key, line);
    for (const oldest of this.#lines.keys()) {
      if (this.#lines.size <= maxRecipes) break;
      this.#lines.delete(oldest);
    }
    return line;
  }
}
