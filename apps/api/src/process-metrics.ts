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
    for (const count of databaseCounts) gaugeOf(this.#registry, options.db, count);
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

interface DatabaseCount {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  /** Rows of (label, value). */
  readonly sql: string;
}
const databaseCounts: readonly DatabaseCount[] = [
  {
    name: "rolldeck_runs",
    help: "Runs by status",
    label: "status",
    sql: `select "status" as "label", count(*)::float8 as "value" from "runs" group by 1`,
  },
  {
    name: "rolldeck_pool_used",
    help: "Leases held by resource",
    label: "resource",
    sql: `select "resource" as "label", "used"::float8 as "value" from "pools"`,
  },
  {
    name: "rolldeck_pool_size",
    help: "Size of each pool",
    label: "resource",
    sql: `select "resource" as "label", "size"::float8 as "value" from "pools"`,
  },
];

function gaugeOf(register: Registry, db: Queryable, { name, help, label, sql }: DatabaseCount): void {
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
