/**
 * Follows the logs of workers' containers, one follower for each, from its start in this process until the container ends. A stream that
 * broke off goes on after the last line that was heard, by the time that begins each line.
 */
import type { WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import type { FleetScene } from "./fleet-scene.ts";

/** Lines from before: of a container that another process started. */
const tail = 200;

export class LogFollowers {
  readonly #scene: Pick<FleetScene, "onLog" | "loggedUntil" | "say">;
  readonly #followed = new Set<string>();
  /** Time of the newest line of each worker, as its daemon writes it: of one length, so that text order is time order. */
  readonly #heardUntil = new Map<string, string>();

  constructor(scene: Pick<FleetScene, "onLog" | "loggedUntil" | "say">) {
    this.#scene = scene;
  }

  follow(workerId: string, containerId: string, launcherOf: () => WorkerLauncher | null, signal: AbortSignal): void {
    const { onLog } = this.#scene;
    if (onLog === undefined || this.#followed.has(containerId)) return;
    const launcher = launcherOf();
    if (launcher === null) return;
    this.#followed.add(containerId);
    const reading = async (): Promise<void> => {
      let heard = this.#heardUntil.get(workerId) ?? this.#scene.loggedUntil?.(workerId) ?? "";
      for await (const line of launcher.logs(containerId, { tail, follow: true }, signal)) {
        const at = timeOf(line);
        if (at !== "" && at <= heard) continue;
        heard = at === "" ? heard : at;
        this.#heardUntil.set(workerId, heard);
        onLog(workerId, line);
      }
    };
    // A host that fell silent: the next round follows it again.
    reading()
      .catch((error: unknown) => {
        if (!signal.aborted) this.#scene.say(`the log of worker ${workerId} broke off`, error);
      })
      .finally(() => this.#followed.delete(containerId));
  }
}

/** What a line begins with where it is a time; else nothing. */
export const timeOf = (line: string): string => /^\d{4}-\d\d-\d\dT\S+/.exec(line)?.[0] ?? "";
