/** A reader of a run's log over REST, as a page or a script is one: it asks for what comes after the last event it has, whoever died meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Rolldeck } from "@rolldeck/client/rolldeck";

export interface FollowedLog {
  /** Events that came twice, out of order, or were left out. */
  readonly gaps: number;
  readonly last: number;
  /** Reads until `upTo` is there, then no more. @throws Error when it is not there within 30 s */
  end(upTo: number): Promise<void>;
}

const limitMs = 30_000;

export function followLog(rolldeck: Pick<Rolldeck, "readEvents">, runId: string): FollowedLog {
  let [gaps, last, isOver] = [0, 0, false];
  const read = async (): Promise<void> => {
    while (!isOver) {
      const page = await rolldeck.readEvents({ runId, after: last, waitMs: 500 }).catch(() => null);
      if (page === null) await sleep(100);
      for (const { seq } of page?.events ?? []) {
        if (seq !== last + 1) gaps++;
        last = seq;
      }
    }
  };
  const reading = read();
  return {
    get gaps() {
      return gaps;
    },
    get last() {
      return last;
    },
    end: async (upTo) => {
      for (const end = performance.now() + limitMs; last < upTo && performance.now() < end; ) await sleep(50);
      isOver = true;
      await reading;
      if (last !== upTo) throw new Error(`the reader of the log got to ${last}, the log to ${upTo}`);
    },
  };
}
