/** What the gateway counts, for Prometheus. Names of images are told apart up to a number; tokens, commands and paths never appear. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

const maxImages = 200;

export interface Snapshot {
  readonly queued: number;
  readonly hosts: readonly { readonly name: string; readonly state: string; readonly draining: boolean }[];
  readonly sandboxes: readonly { readonly host: string; readonly image: string; readonly phase: string }[];
  readonly usage: {
    readonly sandboxSeconds: number;
    readonly reservedCpuSeconds: number;
    readonly reservedMemoryMbSeconds: number;
  };
}

export class Measures {
  readonly registry = new Registry();
  readonly #images = new Set<string>();
  readonly #opened = this.#counter("rolldeck_sandbox_opened_total", "Sandboxes opened", ["host", "how"]);
  readonly #openFailures = this.#counter("rolldeck_sandbox_open_failures_total", "Openings that failed", ["code"]);
  readonly #calls = this.#counter("rolldeck_sandbox_calls_total", "Calls into sandboxes", ["method"]);
  readonly #failures = this.#counter("rolldeck_sandbox_call_failures_total", "Calls that failed", ["method", "code"]);
  readonly #bytes = this.#counter("rolldeck_sandbox_bytes_total", "Bytes in and out of sandboxes", ["direction"]);
  readonly #waits = new Histogram({
    name: "rolldeck_sandbox_queue_wait_seconds",
    help: "From asked for to placed",
    buckets: [0.01, 0.1, 0.5, 1, 5, 15, 60, 300],
    registers: [this.registry],
  });

  constructor(now: () => Snapshot) {
    const { registry } = this;
    new Gauge({
      name: "rolldeck_sandbox_queue_length",
      help: "Openings that wait for a place",
      registers: [registry],
      collect() {
        this.set(now().queued);
      },
    });
    this.#openGauge(now);
    this.#hostGauge(now);
    this.#usageGauges(now);
  }

  opened(how: "warm" | "cold", host: string, waitedMs: number): void {
    this.#opened.inc({ how, host });
    this.#waits.observe(waitedMs / 1000);
  }
  openFailed(code: string): void {
    this.#openFailures.inc({ code });
  }
  called(method: string): void {
    this.#calls.inc({ method });
  }
  failed(method: string, code: string): void {
    this.#failures.inc({ method, code });
  }
  moved(direction: "in" | "out", bytes: number): void {
    this.#bytes.inc({ direction }, bytes);
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  #openGauge(now: () => Snapshot): void {
    const imageLabel = (image: string): string => {
      if (!this.#images.has(image) && this.#images.size >= maxImages) return "(others)";
      this.#images.add(image);
      return image;
    };
    new Gauge({
      name: "rolldeck_sandbox_open",
      help: "Sandboxes by host, image and phase",
      labelNames: ["host", "image", "phase"],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { host, image, phase } of now().sandboxes) this.inc({ host, image: imageLabel(image), phase });
      },
    });
  }

  #hostGauge(now: () => Snapshot): void {
    new Gauge({
      name: "rolldeck_sandbox_hosts",
      help: "Hosts by state",
      labelNames: ["host", "state", "draining"],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { name, state, draining } of now().hosts) {
          this.set({ host: name, state, draining: String(draining) }, 1);
        }
      },
    });
  }

  #usageGauges(now: () => Snapshot): void {
    const figures = {
      sandboxSeconds: ["rolldeck_sandbox_seconds", "Seconds that sandboxes were open, all together"],
      reservedCpuSeconds: ["rolldeck_sandbox_reserved_cpu_seconds", "The same times the cores reserved"],
      reservedMemoryMbSeconds: ["rolldeck_sandbox_reserved_memory_mb_seconds", "The same times the memory reserved"],
    } as const;
    for (const key of ["sandboxSeconds", "reservedCpuSeconds", "reservedMemoryMbSeconds"] as const) {
      const [name, help] = figures[key];
      new Gauge({
        name,
        help,
        registers: [this.registry],
        collect() {
          this.set(now().usage[key]);
        },
      });
    }
  }
}
