/**
 * Ends what is at work for a serving once it is stopped, by whichever server: the rows are looked at while anything is at work, all of
 * it in one query.
 */
import { stillServed } from "@rolldeck/db/servings";
import type { Pool } from "pg";
import { OpenAiError } from "./openai-error.ts";

const lookEveryMs = 1_000;

interface AtWork {
  readonly servingId: string;
  readonly stop: AbortController;
}

export class StoppedServings {
  readonly #pool: Pool;
  readonly #atWork = new Set<AtWork>();
  #timer: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** @returns a signal whose reason is what to tell the client, and what to call when the work is over */
  watch(servingId: string): { readonly signal: AbortSignal; readonly done: () => void } {
    const work: AtWork = { servingId, stop: new AbortController() };
    this.#atWork.add(work);
    this.#timer ??= setInterval(() => void this.#look(), lookEveryMs).unref();
    return { signal: work.stop.signal, done: () => this.#leave(work) };
  }

  #leave(work: AtWork): void {
    this.#atWork.delete(work);
    if (this.#atWork.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const asked = new Set([...this.#atWork].map(({ servingId }) => servingId));
    // A database that is away stops nothing: it is asked again.
    const served = await stillServed(this.#pool, [...asked]).catch(() => asked);
    this.#looking = false;
    for (const { servingId, stop } of this.#atWork)
      if (asked.has(servingId) && !served.has(servingId))
        stop.abort(new OpenAiError(401, "The serving was stopped.", { code: "invalid_api_key" }));
  }
}
