import { expect, test } from "vitest";
import { RunWaits } from "./run-waits.ts";

function waits() {
  const clock = { now: 1e12 };
  const notes: string[] = [];
  const counted: number[] = [];
  const made = new RunWaits({
    count: (waitMs) => counted.push(waitMs),
    note: async (runId, message) => void notes.push(`${runId}: ${message}`),
    now: () => clock.now,
    onError: () => expect.unreachable(),
  });
  return { made, notes, counted, clock };
}

test("a crowd that waits is one sentence a minute for each run; short waits are none", () => {
  const { made, notes, counted, clock } = waits();
  const busy = { untilMs: clock.now + 30_000, reason: "HTTP 429" };
  for (let rollout = 0; rollout < 512; rollout++) made.of("run-a")(busy);
  made.of("run-b")(busy);
  made.of("run-c")({ untilMs: clock.now + 1_000, reason: "HTTP 500" });
  expect(notes).toEqual(["run-a: Sampling waits 30 s: HTTP 429", "run-b: Sampling waits 30 s: HTTP 429"]);
  expect(counted).toHaveLength(514);
  expect(counted.at(-1)).toBe(1_000);
  clock.now += 60_001;
  made.of("run-a")({ untilMs: clock.now + 5_000, reason: "HTTP 503" });
  expect(notes.at(-1)).toBe("run-a: Sampling waits 5 s: HTTP 503");
});

test("short pauses in a long absence are told by the absence", () => {
  const { made, notes, clock } = waits();
  made.of("run-a")({ untilMs: clock.now + 1_600, reason: "connect ECONNREFUSED", awayMs: 900 });
  expect(notes).toEqual([]);
  made.of("run-a")({ untilMs: clock.now + 1_600, reason: "connect ECONNREFUSED", awayMs: 31_000 });
  expect(notes).toEqual(["run-a: The model has been away for 31 s: connect ECONNREFUSED"]);
});

test("a note that can't be written is reported, and nothing else", async () => {
  const errors: unknown[] = [];
  const made = new RunWaits({
    count: () => undefined,
    note: () => Promise.reject(new Error("no database")),
    now: () => 0,
    onError: (error) => errors.push(error),
  });
  made.of("run")({ untilMs: 10_000, reason: "x".repeat(2_000) });
  await Promise.resolve();
  await Promise.resolve();
  expect(errors).toHaveLength(1);
});
