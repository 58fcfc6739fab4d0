/** Asks again until it is so; the test's own time limit is the bound. */
import { setTimeout as sleep } from "node:timers/promises";

export async function waitUntil(met: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await met())) await sleep(20);
}
