/** Numbers for Prometheus: this process, its requests, and the few counts of the database that an alarm needs. No run ids. */
import type { Queryable } from "@rolldeck/db/reads/rows";
import { readRows } from "@rolldeck/db/reads/rows";
import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { z } from "zod";

export class ProcessMetrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<"method" | "route" | "status">;

  constructor(options: { readonly db: Queryable; readonly sockets: () => number }) {
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Histogram({
      name: "rolldeck_http_request_duration_seconds",
      help: "Seconds from the first byte of a request to the last of its answer",
      labelNames: ["method", "route", "status"],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30],
      registers: [this.#registry],
    });
    new Gauge({
      name: "rolldeck_sockets",
      help: "Connected live clients",
      registers: [this.#registry],
      collect() {
        this.set(options.sockets());
      },
    });
    gaugeOf(
      this.#registry,
      options.db,
      "rolldeck_runs",
      "Runs by status",
      "status",
      `
      select "status" as "label", count(*)::float8 as "value" from "runs" group by 1`,
    );
    gaugeOf(
      this.#registry,
      options.db,
      "rolldeck_pool_used",
      "Leases held by resource",
      "resource",
      `
      select "resource" as "label", "used"::float8 as "value" from "pools"`,
    );
    gaugeOf(
      this.#registry,
      options.db,
      "rolldeck_pool_size",
      "Size of each pool",
      "resource",
      `
      select "resource" as "label", "size"::float8 as "value" from "pools"`,
    );
  }

  observe(method: string, route: string, status: number, seconds: number): void {
    this.#requests.observe({ method: known(method), route, status: String(status) }, seconds);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}

/** Methods are the client's to invent; labels are not. */
const known = (method: string): string =>
  ["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"].includes(method) ? method : "other";

function gaugeOf(register: Registry, db: Queryable, name: string, help: string, label: string, sql: string): void {
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [register],
    async collect() {
      this.reset();
      for (const row of await readRows(db, z.object({ label: z.string(), value: z.number() }), sql))
        this.set({ [label]: row.label }, row.value);
    },
  });
}
