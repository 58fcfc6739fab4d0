import type pg from "pg";

/** Says this worker process lives and how many stages it runs. */
export function heartbeat(_pool: pg.Pool, _workerId: string, _stages: number): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
export function removeWorker(_pool: pg.Pool, _workerId: string): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
