/** The fleet: rows are read and written here, the supervisor's loop does what they say. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { addFleetHost, drainFleetHost, removeFleetHost } from "@rolldeck/db/fleet/fleet-hosts";
import { checkFleetWorker, readFleetPage, readRunGpuWorkers } from "@rolldeck/db/reads/read-fleet-page";
import type { Pool } from "pg";
import type { FleetServices } from "../services.ts";

/** Of a log's end, at most: lines of any length fit an answer. */
const maxBytes = 1_000_000;

/** @param logFolder where the supervisor keeps a file for each worker */
export function createFleetServices(pool: Pool, logFolder: string): FleetServices {
  return {
    get: () => readFleetPage(pool),
    ofRun: ({ runId }) => readRunGpuWorkers(pool, runId),
    async addHost(spec) {
      await addFleetHost(pool, spec);
      return readFleetPage(pool);
    },
    async drainHost({ name, draining }) {
      await drainFleetHost(pool, name, draining);
      return readFleetPage(pool);
    },
    async removeHost({ name }) {
      await removeFleetHost(pool, name);
      return readFleetPage(pool);
    },
    async log({ workerId, lines }) {
      await checkFleetWorker(pool, workerId);
      const { text, cut } = await readEnd(join(logFolder, `${workerId}.log`));
      const all = text.split("\n").filter((line) => line !== "");
      return { workerId, lines: all.slice(-lines), more: cut || all.length > lines };
    },
  };
}

/** The end of a file, from the start of a line on; nothing where there is no file. */
async function readEnd(file: string): Promise<{ readonly text: string; readonly cut: boolean }> {
  const handle = await open(file, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (handle === null) return { text: "", cut: false };
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - maxBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
    const text = buffer.subarray(0, bytesRead).toString("utf8");
    return from === 0 ? { text, cut: false } : { text: text.slice(text.indexOf("\n") + 1), cut: true };
  } finally {
    await handle.close();
  }
}
