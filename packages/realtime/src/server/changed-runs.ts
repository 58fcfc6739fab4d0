/** Ids of runs that changed, told at most every 250 ms: the run list needs no more. */
const coalesceMs = 250;

export class ChangedRuns {
  readonly #ids = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly tell: (runIds: string[]) => void) {}

  add(runId: string): void {
    this.#ids.add(runId);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.tell([...this.#ids]);
      this.#ids.clear();
    }, coalesceMs);
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }
}
