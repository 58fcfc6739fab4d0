import pg from "pg";
import { describeQueue } from "../testing/conformance.ts";
import { startPostgres } from "../testing/postgres.ts";
import { connectQueue } from "./connection.ts";
import { queueSchema } from "./shared-pool.ts";

describeQueue({
  name: "Postgres",
  start: startPostgres,
  stored: async (server, queue) => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      const { rows } = await client.query(`select count(*)::int as n from ${queueSchema}.job where queue = $1`, [
        queue,
      ]);
      return rows[0].n;
    } finally {
      await client.end();
    }
  },
  connect: async (server) => {
    const pool = new pg.Pool({ connectionString: server.url, max: 10, options: "-c search_path=public" });
    // Whoever makes a pool listens to it for as long as it lives.
    pool.on("error", () => {});
    // A client that is ending has left the pool, and may still hear that its server goes down.
    pool.on("connect", (client) => client.on("error", () => {}));
    const connection = await connectQueue({ pool });
    return {
      ...connection,
      close: async () => {
        await connection.close();
        await pool.end();
      },
    };
  },
});
