/** Worker processes that live, for the system page. */
import type pg from "pg";

/** Silent for so long, a worker is taken off the page. */
const goneAfterSeconds = 60;

/** Says this worker process lives and how many stages it runs. */
export async function heartbeat(pool: pg.Pool, workerId: string, stages: number): Promise<void> {
  await pool.query(
    `insert into workers (id, stages) values ($1, $2)
     on conflict (id) do update set last_seen_at = now(), stages = excluded.stages`,
    [workerId, stages],
  );
}

export async function removeWorker(pool: pg.Pool, workerId: string): Promise<void> {
  await pool.query("delete from workers where id = $1", [workerId]);
}

/** Takes workers that fell silent off the page, and marks of writers that are long gone out of the database. */
export async function dropDeadWorkers(pool: pg.Pool): Promise<void> {
  await pool.query("delete from workers where last_seen_at < now() - $1 * interval '1 second'", [goneAfterSeconds]);
  await pool.query("delete from writer_marks where at < now() - interval '1 day'");
}
