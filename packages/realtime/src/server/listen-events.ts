/**
 * One connection that LISTENs to `rolldeck_events`, for as long as the process lives.
 *
 * Invariant: after `onListening` every commit of events is told by `onEvents`; while the connection is down nothing is told,
 * and `onListening` is called again when it is back, so that the caller compares its cursors with the rows.
 */
import { Client } from "pg";
import { z } from "zod";

export const eventsChannel = "rolldeck_events";
const Notice = z.object({ runId: z.string(), seq: z.coerce.number().int() });

export interface ListenOptions {
  readonly connectionString: string;
  /** A commit raised the run's newest `seq` to this. */
  readonly onEvents: (runId: string, seq: number) => void;
  /** LISTEN is in force (again). */
  readonly onListening: () => void;
  /** The connection failed; a new one is being made. */
  readonly onError: (error: Error) => void;
  /** How often the connection is proved alive, ms; a silent one is replaced. */
  readonly probeMs?: number;
}
export interface EventListener {
  close(): Promise<void>;
}

const retryMs = (failures: number): number => Math.min(100 * 2 ** failures, 3_000);

export function listenEvents(options: ListenOptions): EventListener {
  const probeMs = options.probeMs ?? 10_000;
  let client: Client | null = null;
  let closed = false;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | null = null;

  const replace = (broken: Client, error: Error): void => {
    if (client !== broken || closed) return;
    client = null;
    if (timer) clearTimeout(timer);
    options.onError(error);
    // The connection is given up: how its end goes does not matter any more.
    broken.end().catch(() => undefined);
    timer = setTimeout(() => void connect(), retryMs(failures++));
  };

  const probe = (alive: Client): void => {
    timer = setTimeout(async () => {
      try {
        await alive.query("select 1");
        if (client === alive && !closed) probe(alive);
      } catch (error) {
        replace(alive, asError(error));
      }
    }, probeMs);
    timer.unref();
  };

  async function connect(): Promise<void> {
    const next = new Client({
      connectionString: options.connectionString,
      application_name: "rolldeck events",
      keepAlive: true,
      query_timeout: probeMs,
      connectionTimeoutMillis: 5_000,
    });
    client = next;
    next.on("error", (error) => replace(next, error));
    next.on("end", () => replace(next, new Error("the connection that listens for events ended")));
    next.on("notification", ({ payload }) => {
      const notice = parseNotice(payload);
      if (notice) options.onEvents(notice.runId, notice.seq);
    });
    try {
      await next.connect();
      await next.query(`listen ${eventsChannel}`);
      if (client !== next || closed) return;
      failures = 0;
      options.onListening();
      probe(next);
    } catch (error) {
      replace(next, asError(error));
    }
  }

  void connect();
  return {
    async close() {
      closed = true;
      if (timer) clearTimeout(timer);
      const last = client;
      client = null;
      await last?.end();
    },
  };
}

/** Anyone with database access can notify: what is not a notice of ours is ignored. */
function parseNotice(payload: string | undefined): { runId: string; seq: number } | null {
  try {
    const notice = Notice.safeParse(JSON.parse(payload ?? ""));
    return notice.success ? notice.data : null;
  } catch {
    return null;
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
