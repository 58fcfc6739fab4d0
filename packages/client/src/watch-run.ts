/**
 * A run's events as an async iterator: every event after `after`, once, in order. It long-polls the event log, so it needs
 * no socket and survives restarts of the server. It ends after the event that ends the run.
 */
import type { EventPage } from "@rolldeck/contracts/api/runs";
import type { RunEvent } from "@rolldeck/contracts/events";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { z } from "zod";
import { UnreachableError } from "./api-problem.ts";

export type ReadPage = (after: number, waitMs: number) => Promise<z.output<typeof EventPage>>;

export interface WatchOptions {
  /** Last `seq` already known; 0 = from the beginning. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Longest wait of one request, ms; at most 30,000. */
  readonly waitMs?: number;
  /** Delay before asking again while the server does not answer, ms. */
  readonly retryMs?: number;
}

/** @param isOver asked when nothing came: a run may have ended before `after` */
export async function* watchEvents(
  read: ReadPage,
  isOver: () => Promise<boolean>,
  options: WatchOptions = {},
): AsyncGenerator<RunEvent, void, void> {
  let cursor = options.after ?? 0;
  while (!options.signal?.aborted) {
    const page = await readPatiently(read, cursor, options);
    for (const event of page?.events ?? []) {
      // A page begins right after the cursor; anything else is not this log.
      if (event.seq !== cursor + 1) break;
      cursor = event.seq;
      yield event;
      if (endsRun(event)) return;
    }
    if (page?.events.length === 0 && (await isOver())) return;
  }
}

/** A server that restarts is waited for; nothing is lost meanwhile, because the cursor stays. */
async function readPatiently(read: ReadPage, cursor: number, options: WatchOptions) {
  try {
    return await read(cursor, options.waitMs ?? 20_000);
  } catch (error) {
    if (options.signal?.aborted) return null;
    if (!(error instanceof UnreachableError)) throw error;
    await new Promise((resolve) => setTimeout(resolve, options.retryMs ?? 500));
    return null;
  }
}

const endsRun = ({ body }: RunEvent): boolean => body.type === "run-status" && endedRunStatuses.includes(body.to);
