/** What the daemon's refusals mean to whoever asked. */
import { expect, test } from "vitest";
import { daemonTrouble } from "./daemon-trouble.ts";

const answer = (statusCode: number, message: string): Error => Object.assign(new Error(message), { statusCode });

test.each([
  [
    409,
    "(HTTP code 409) container stopped/paused - Container 5f86 is paused, unpause the container before exec",
    "unavailable",
    true,
  ],
  [409, "(HTTP code 409) conflict - Container 5f86 is restarting, wait until the container is running", "gone", false],
  [409, "(HTTP code 409) container stopped/paused - Container 5f86 is not running", "gone", false],
  [404, "(HTTP code 404) no such container - No such container: 5f86", "gone", false],
  [400, "(HTTP code 400) bad parameter - invalid user", "refused", false],
  [500, "(HTTP code 500) server error - no space left on device", "full", true],
])("%i %s", (status, message, code, retryable) => {
  expect(daemonTrouble(answer(status, message), "starting a command")).toMatchObject({ code, retryable });
});
