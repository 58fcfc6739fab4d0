/** The database's clock as this process knows it: leases and deadlines are in its time, hosts may differ. */
import type { Pool } from "@rolldeck/db/connect";
import { z } from "zod";

const Row = z.object({ now: z.number() });

export class DatabaseClock {
  readonly #pool: Pool;
  readonly #local: () => number;
  #offsetMs = 0;

  constructor(pool: Pool, local: () => number) {
    this.#pool = pool;
    this.#local = local;
  }

  /** Milliseconds since 1970; good to half a round trip of the last measurement. */
  now(): number {
    return this.#local() + this.#offsetMs;
  }

  async measure(): Promise<void> {
    const sentAt = this.#local();
    const { rows } = await this.#pool.query(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now`);
    this.#offsetMs = Row.parse(rows[0]).now - (sentAt + this.#local()) / 2;
  }
}
