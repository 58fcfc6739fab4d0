/**
 * Closes on one host what nobody holds: each once at a time, some beside each other, so that a host that comes back with thousands
 * still has room for other calls. What could not be closed is found again when the host next says what it has.
 */
import { call } from "@rolldeck/sandbox/remote/call";
import type { Link } from "@rolldeck/sandbox/remote/link";

const breadth = 16;
const closeLimitMs = 60_000;

export class Closings {
  readonly #link: () => Link | null;
  readonly #onTrouble: (id: string, error: unknown) => void;
  readonly #waiting = new Set<string>();
  readonly #underWay = new Set<string>();

  /** @param link of the moment; null while the host is away */
  constructor(link: () => Link | null, onTrouble: (id: string, error: unknown) => void) {
    this.#link = link;
    this.#onTrouble = onTrouble;
  }

  add(id: string): void {
    if (this.#underWay.has(id)) return;
    this.#waiting.add(id);
    this.#begin();
  }

  #begin(): void {
    const link = this.#link();
    if (link === null) this.#waiting.clear();
    else this.#beginOn(link);
  }

  #beginOn(link: Link): void {
    for (const id of this.#waiting) {
      if (this.#underWay.size >= breadth) return;
      this.#waiting.delete(id);
      this.#underWay.add(id);
      call(link, "close", { sandbox: id }, AbortSignal.timeout(closeLimitMs))
        .catch((error: unknown) => this.#onTrouble(id, error))
        .finally(() => {
          this.#underWay.delete(id);
          this.#begin();
        });
    }
  }
}
