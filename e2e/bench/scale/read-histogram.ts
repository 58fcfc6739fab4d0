/** A Prometheus histogram as a process shows it: counts up to each bound, bounds rising, the last one +Inf. */
export class Histogram {
  readonly #counts: ReadonlyMap<number, number>;

  /** Of all that was counted. */
  readonly sum: number;

  constructor(counts: ReadonlyMap<number, number>, sum: number) {
    this.#counts = counts;
    this.sum = sum;
  }

  get mean(): number {
    return this.sum / (this.#counts.get(Number.POSITIVE_INFINITY) ?? 0);
  }

  /** What came after an earlier reading. */
  since(earlier: Histogram): Histogram {
    return new Histogram(
      new Map([...this.#counts].map(([bound, n]) => [bound, n - (earlier.#counts.get(bound) ?? 0)])),
      this.sum - earlier.sum,
    );
  }

  /** Linear inside the bucket; the last finite bound when it lies past it. @throws RangeError when nothing was counted */
  quantile(q: number): number {
    const bounds = [...this.#counts].sort(([a], [b]) => a - b);
    const total = bounds.at(-1)?.[1] ?? 0;
    if (total === 0) throw new RangeError("nothing was counted");
    const rank = q * total;
    let [below, counted] = [0, 0];
    for (const [bound, upTo] of bounds) {
      if (upTo >= rank)
        return bound === Number.POSITIVE_INFINITY
          ? below
          : below + ((rank - counted) / (upTo - counted)) * (bound - below);
      [below, counted] = [bound, upTo];
    }
    return below;
  }
}

const metricsOf = async (port: number): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

/** Over all labels. @param port of a worker's /metrics on loopback */
export async function readCounter(port: number, name: string): Promise<number> {
  const values = (await metricsOf(port)).matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** @param port of a worker's /metrics on loopback */
export async function readHistogram(port: number, name: string): Promise<Histogram> {
  const text = await metricsOf(port);
  const counts = new Map<number, number>();
  for (const [, bound, count] of text.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)"\\} (\\d+)$`, "gm"))) {
    counts.set(bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound), Number(count));
  }
  const sum = new RegExp(`^${name}_sum (\\S+)$`, "m").exec(text)?.[1];
  return new Histogram(counts, Number(sum ?? 0));
}
