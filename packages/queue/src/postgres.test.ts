import pg from "pg";
import { describeQueue } from "../testing/conformance.ts";
import { startPostgres } from "../testing/postgres.ts";
import { connectQueue } from "./connection.ts";

describeQueue({
  name: "Postgres",
  start: startPostgres,
  connect: async (server) => {
    const pool = new pg.Pool({ connectionString: server.url, max: 10, options: "-c search_path=public" });
    // Whoever makes a pool listens to it for as long as it lives.
    pool.on("error", () => {});
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
