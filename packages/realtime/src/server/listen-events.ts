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

export function listenEvents(options: ListenOptions): { close(): Promise<void> } {
  const listener = new EventListener(options);
  void listener.connect();
  return listener;
}

const retryMs = (failures: number): number => Math.min(100 * 2 ** failures, 3_000);

class EventListener {
  readonly #options: ListenOptions;
  readonly #probeMs: number;
  #client: Client | null = null;
  #closed = false;
  #failures = 0;
  /** The next probe or the next attempt, whichever is due. */
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.#probeMs = options.probeMs ?? 10_000;
  }

  async connect(): Promise<void> {
    const client = new Client({
      connectionString: this.#options.connectionString,
      application_name: "rolldeck events",
      keepAlive: true,
      query_timeout: this.#probeMs,
      connectionTimeoutMillis: 5_000,
    });
    this.#client = client;
    client.on("error", (error) => this.#replace(client, error));
    client.on("end", () => this.#replace(client, new Error("the connection that listens for events ended")));
    client.on("notification", ({ payload }) => {
      const notice = parseNotice(payload);
      if (notice) this.#options.onEvents(notice.runId, notice.seq);
    });
    try {
      await client.connect();
      await client.query(`listen ${eventsChannel}`);
      if (this.#client !== client || this.#closed) return;
      this.#failures = 0;
      this.#options.onListening();
      this.#probeLater(client);
    } catch (error) {
      this.#replace(client, asError(error));
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
    const last = this.#client;
    this.#client = null;
    await last?.end();
  }

  #probeLater(client: Client): void {
    this.#timer = setTimeout(() => {
      client.query("select 1").then(
        () => this.#client === client && !this.#closed && this.#probeLater(client),
        (error: unknown) => this.#replace(client, asError(error)),
      );
    }, this.#probeMs);
    this.#timer.unref();
  }

  #replace(broken: Client, error: Error): void {
    if (this.#client !== broken || this.#closed) return;
    this.#client = null;
    if (this.#timer) clearTimeout(this.#timer);
    this.#options.onError(error);
    // The connection is given up: how its end goes does not matter any more.
    broken.end().catch(() => undefined);
    this.#timer = setTimeout(() => void this.connect(), retryMs(this.#failures++));
  }
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
