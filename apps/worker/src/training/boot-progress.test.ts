import type { BootProgress as BootRow } from "@rolldeck/db/training/set-boot";
import { expect, test } from "vitest";
import { BootProgress } from "./boot-progress.ts";

function progress() {
  const clock = { now: 0 };
  const written: BootRow[] = [];
  const boot = new BootProgress(
    async (row) => {
      written.push(row);
    },
    () => clock.now,
  );
  return { boot, clock, written };
}

test("a fast phase costs two events a second, and its last step is always told", async () => {
  const { boot, clock, written } = progress();
  for (let step = 1; step <= 100; step++) {
    clock.now += 20;
    await boot.report("warm-start", `step ${step}`, { done: step, total: 100, unit: "steps" });
  }
  expect(written.length).toBeLessThanOrEqual(6);
  expect(written.at(-1)).toMatchObject({ done: 100, total: 100, elapsedMs: 1_980 });
});

test("a new phase is told at once and counts its own time; nothing is told twice", async () => {
  const { boot, clock, written } = progress();
  await boot.report("environment", "downloading");
  clock.now = 10_000;
  await boot.report("environment", "downloading");
  clock.now = 10_001;
  await boot.report("create-model", "creating");
  expect(written.map(({ phase, elapsedMs }) => [phase, elapsedMs])).toEqual([
    ["environment", 0],
    ["create-model", 0],
  ]);
});
