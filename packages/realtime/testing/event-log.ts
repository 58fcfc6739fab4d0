/** An event log in memory that behaves as the rows do, for tests of what reads it. */
import type { RunEvent } from "@rolldeck/contracts/events";
import type { ReadEvents } from "../src/server/event-tail.ts";

export const noteEvent = (runId: string, seq: number): RunEvent => ({
  runId,
  seq,
  at: "2026-01-01T00:00:00.000Z",
  body: { type: "note", level: "info", message: `event ${seq}` },
});

export class MemoryLog {
  readonly #heads = new Map<string, number>();
  reads = 0;

  /** @returns the new head */
  commit(runId: string, count: number): number {
    const head = (this.#heads.get(runId) ?? 0) + count;
    this.#heads.set(runId, head);
    return head;
  }
  headOf(runId: string): number {
    return this.#heads.get(runId) ?? 0;
  }
  readonly read: ReadEvents = async (runId, after, limit) => {
    this.reads++;
    await new Promise((resolve) => setImmediate(resolve));
    const head = this.#heads.get(runId);
    if (head === undefined) return null;
    const count = Math.max(0, Math.min(limit, head - after));
    return { head, events: Array.from({ length: count }, (_, at) => noteEvent(runId, after + 1 + at)) };
  };
}
