/** Removes from hosts what runs left there that nobody can want, now and then, while every host answers: a run is forgotten once, whole. */
import type { FleetRows } from "@rolldeck/contracts/ports/fleet-store";
import { LaunchFailure } from "../launch-failure.ts";
import type { FleetScene } from "./fleet-scene.ts";
import type { HostWatch } from "./host-watch.ts";

const everyMs = 10_000;

export class OldRuns {
  readonly #scene: Pick<FleetScene, "store" | "say" | "onForgotten">;
  readonly #hosts: HostWatch;
  #next = 0;

  constructor(scene: Pick<FleetScene, "store" | "say" | "onForgotten">, hosts: HostWatch) {
    this.#scene = scene;
    this.#hosts = hosts;
  }

  /** @param seen names of hosts that answered in this round */
  async forget({ hosts }: FleetRows, seen: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const now = performance.now();
    if (now < this.#next || !hosts.every(({ spec }) => seen.has(spec.name))) return;
    this.#next = now + everyMs;
    const { store, say, onForgotten } = this.#scene;
    for (const { runId, workerIds } of await store.forgettable()) {
      try {
        // One after the other: nobody waits for it.
        for (const { spec } of hosts) await this.#hosts.launcher(spec).forgetRun(runId, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof LaunchFailure)) throw error;
        say(`what run ${runId} saved could not be removed`, error);
        continue;
      }
      await store.forgotten(runId);
      onForgotten?.(workerIds);
    }
  }
}
