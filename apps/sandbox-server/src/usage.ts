/** What runs used, in reserved cores and memory over time. Pure; the clock is an argument. Invariant: at most `maxRuns` are told apart. */
export interface Usage {
  readonly run: string;
  readonly sandboxSeconds: number;
  readonly reservedCpuSeconds: number;
  readonly reservedMemoryMbSeconds: number;
}

export interface Reserved {
  readonly run: string;
  readonly cpus: number;
  readonly memoryMb: number;
}

const maxRuns = 1_000;
/** Of those beyond. */
const others = "(others)";

export class UsageMeter {
  readonly #runs = new Map<string, Usage>();

  /** A sandbox lived for so long since it was last counted. */
  add({ run, cpus, memoryMb }: Reserved, seconds: number): void {
    const name = this.#runs.has(run) || this.#runs.size < maxRuns ? run : others;
    const before = this.#runs.get(name);
    this.#runs.set(name, {
      run: name,
      sandboxSeconds: (before?.sandboxSeconds ?? 0) + seconds,
      reservedCpuSeconds: (before?.reservedCpuSeconds ?? 0) + cpus * seconds,
      reservedMemoryMbSeconds: (before?.reservedMemoryMbSeconds ?? 0) + memoryMb * seconds,
    });
  }

  /** Most first. */
  all(): Usage[] {
    return [...this.#runs.values()].sort((a, b) => b.sandboxSeconds - a.sandboxSeconds);
  }
}
