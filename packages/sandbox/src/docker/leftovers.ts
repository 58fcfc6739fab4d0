/**
 * Removes what killed processes left in the daemon, now and from time to time: containers that were made and not started, services
 * and networks of sandboxes that are gone, images past their lease. Invariant: what a living process may be about to use stays.
 */
import type Docker from "dockerode";
import { besideOwners, closeBeside } from "./beside.ts";
import type { KeptImages } from "./kept-images.ts";
import { listedSandboxes } from "./listed-sandboxes.ts";
import { isDeadOwner } from "./owner.ts";

const everyMs = 10_000;
const imagesEveryMs = 600_000;
/** What stands beside no sandbox, made by somebody who is not known to be dead: services that come up slowly take their time. */
const openingMs = 900_000;

export interface LeftoversOptions {
  readonly docker: Docker;
  readonly deployment: string;
  readonly images: Pick<KeptImages, "sweep">;
  /** Of a sandbox, with what stands beside it. */
  readonly close: (id: string) => Promise<void>;
  readonly onTrouble: (message: string, error: unknown) => void;
}

export class Leftovers {
  readonly #options: LeftoversOptions;
  #timer: NodeJS.Timeout | null = null;
  #sweeping: Promise<void> | null = null;
  #imagesSweptMs = Number.NEGATIVE_INFINITY;
  /** Sandboxes that are not there while something of theirs is, and since when. */
  #aloneSince = new Map<string, number>();

  constructor(options: LeftoversOptions) {
    this.#options = options;
  }

  /** From now on, once. */
  start(): void {
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => void this.sweep(), everyMs);
    this.#timer.unref();
    void this.sweep();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** One at a time; troubles are told and are the next one's business. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    await this.#told("leftovers could not be removed", () => this.#sweepSandboxes());
    if (performance.now() - this.#imagesSweptMs < imagesEveryMs) return;
    this.#imagesSweptMs = performance.now();
    await this.#told("images that nobody uses could not be removed", () => this.#options.images.sweep());
  }

  async #told(trouble: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.onTrouble(`Docker sandboxes: ${trouble}`, error);
    }
  }

  async #sweepSandboxes(): Promise<void> {
    const { docker, deployment, close } = this.#options;
    // Before the sandboxes: one that is being opened has its services first.
    const beside = await besideOwners(docker, deployment);
    const listed = await listedSandboxes(docker, deployment);
    for (const { id, leftover } of listed) if (leftover) await close(id);
    const there = new Set(listed.map(({ id }) => id));
    const now = performance.now();
    const alone = [...beside].filter(([id]) => !there.has(id));
    this.#aloneSince = new Map(alone.map(([id]) => [id, this.#aloneSince.get(id) ?? now]));
    for (const [id, owner] of alone) {
      const longAlone = now - (this.#aloneSince.get(id) ?? now) > openingMs;
      if (longAlone || (await isDeadOwner(owner))) await closeBeside(docker, id);
    }
  }
}
