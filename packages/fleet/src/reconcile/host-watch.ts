/**
 * Looks at hosts: what runs there in every round, what they are now and then. One that does not answer is written down as away, and keeps
 * no other waiting: from then on it is asked beside the rounds until it answers. Invariant: what a round is told of a host was asked of
 * it within that round.
 */
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import type { FleetHostRow } from "@rolldeck/contracts/ports/fleet-store";
import { LaunchFailure } from "../launch-failure.ts";
import type { FleetScene } from "./fleet-scene.ts";

/** A host is asked what it is so often; its GPUs are probed then. */
const factsEveryMs = 300_000;

export class HostWatch {
  readonly #scene: Pick<FleetScene, "store" | "launcherOf" | "say">;
  /** Looks under way, by host; they outlast a round only where nobody waits for them. */
  readonly #looks = new Map<string, Promise<readonly SeenWorker[] | null>>();
  /** Hosts that did not answer when they were asked last. */
  readonly #silent = new Set<string>();
  readonly #launchers = new Map<string, { readonly key: string; readonly launcher: WorkerLauncher }>();

  constructor(scene: Pick<FleetScene, "store" | "launcherOf" | "say">) {
    this.#scene = scene;
  }

  /** One launcher per host while its registration stays the same. */
  launcher(spec: FleetHostSpec): WorkerLauncher {
    const key = JSON.stringify(spec);
    const known = this.#launchers.get(spec.name);
    if (known?.key === key) return known.launcher;
    const launcher = this.#scene.launcherOf(spec);
    this.#launchers.set(spec.name, { key, launcher });
    return launcher;
  }

  /** Until looks that nobody waited for have ended. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#looks.values());
  }

  /** @returns the fleet's containers on every host that answered in this round */
  async look(hosts: readonly FleetHostRow[], signal: AbortSignal): Promise<Map<string, readonly SeenWorker[]>> {
    const seen = new Map<string, readonly SeenWorker[]>();
    await Promise.all(
      hosts.map(async (host) => {
        const { name } = host.spec;
        // One from an earlier round: it may not know what was launched since.
        if (this.#looks.has(name)) return;
        const waits = !this.#silent.has(name);
        const look = this.#lookAt(host, signal).finally(() => this.#looks.delete(name));
        this.#looks.set(name, look);
        if (!waits) {
          look.catch((error: unknown) => {
            if (!signal.aborted) this.#scene.say(`looking at host ${name} failed`, error);
          });
          return;
        }
        const containers = await look;
        if (containers !== null) seen.set(name, containers);
      }),
    );
    return seen;
  }

  async #lookAt(host: FleetHostRow, signal: AbortSignal): Promise<readonly SeenWorker[] | null> {
    const { store, say } = this.#scene;
    const { name } = host.spec;
    try {
      const launcher = this.launcher(host.spec);
      const stale = host.state !== "ready" || host.factsAgeMs === null || host.factsAgeMs > factsEveryMs;
      if (stale) await store.hostFacts(name, await launcher.facts(signal));
      const containers = await launcher.seen(signal);
      if (!stale) await store.hostSeen(name);
      this.#silent.delete(name);
      return containers;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof LaunchFailure)) throw error;
      this.#silent.add(name);
      if (host.state === "ready") say(`host ${name} does not answer`, error);
      await store.hostAway(name, error.reason);
      return null;
    }
  }
}
