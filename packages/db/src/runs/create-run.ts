import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";

export function createRun(_pool: pg.Pool, _run: { readonly config: RunConfig }): Promise<{ runId: string }> {
  return Promise.reject(new Error("under construction"));
}
