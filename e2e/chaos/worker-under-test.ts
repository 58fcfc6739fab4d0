/**
 * The real worker, with one thing more: after SIGUSR2 the process ends itself, as kill −9 would, right before the first statement
 * that holds the text of ROLLDECK_CHAOS_CRASH_BEFORE. So a test can cut a reconcile between its parts without a word of it in the product.
 */
import pg from "pg";

const marker = process.env.ROLLDECK_CHAOS_CRASH_BEFORE ?? "";
let armed = false;
process.on("SIGUSR2", () => {
  armed = marker !== "";
});

const textOf = (query: unknown): string => {
  if (typeof query === "string") return query;
  return typeof query === "object" && query !== null && "text" in query ? String(query.text) : "";
};

const original = pg.Client.prototype.query;
Object.defineProperty(pg.Client.prototype, "query", {
  value(this: pg.Client, ...parameters: Parameters<typeof original>) {
    if (armed && textOf(parameters[0]).includes(marker)) process.kill(process.pid, "SIGKILL");
    return original.apply(this, parameters);
  },
});

await import("../../apps/worker/src/main.ts");
