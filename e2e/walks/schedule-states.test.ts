/**
 * The Schedule tab and the pools where something else than the usual is on: a prediction against what was, a simulation
 * that is stopped, and a step of 4,096 rollouts. Rows are seeded, everything else is real.
 */
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, openSignedIn, patienceMs } from "./testing/browser.ts";
import { canvasColours } from "./testing/canvas-colours.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";
import { type ScheduleStory, seedScheduleStory } from "./testing/schedule-story.ts";

describe.skipIf(chromiumMissing)(`schedules out of the ordinary, ${chromiumName}`, () => {
  let stack: PageStack;
  let browser: Browser;
  let page: Page;
  let story: ScheduleStory;
  let pageErrors: readonly string[];
  const row = async <T>(sql: string, values: readonly unknown[] = []): Promise<T> =>
    (await stack.api.database.pool.query(sql, [...values])).rows[0];
  const open = async (runId: string, query = "") => {
    await page.goto(`${stack.url}/runs/${runId}?tab=schedule${query}`);
    await page.getByTestId("gantt").waitFor();
  };

  beforeAll(async () => {
    stack = await startPageStack();
    story = await seedScheduleStory(stack.api.database.pool);
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("what was predicted is held against what the steps took", async () => {
    await expect
      .poll(async () => row("select 1 as there from predictions where run_id = $1", [story.runId]), {
        timeout: patienceMs,
      })
      .toEqual({ there: 1 });
    await open(story.runId, "&step=1");
    const panel = page.getByRole("region", { name: "Predicted against actual" });
    await panel
      .getByTestId("predicted-actual")
      .getByText(/no step that it speaks of is over yet/)
      .waitFor();
    await panel.getByText(/From the 9\d rollouts of its own step 1; pipeline with 12, 24 and 8 at once/).waitFor();
    await panel.getByText(/Waiting in the shown step: predicted \d.*actual \d/).waitFor();
    await panel.getByRole("cell", { name: "predicted from it: not counted" }).waitFor();
    await page.goto(`${stack.url}/runs/${story.fresh}?tab=schedule`);
    await panel.getByText(/One is made from this run's first step/).waitFor();
  });

  test("a simulation is stopped midway, and another one may begin", async () => {
    await open(story.runId);
    const panel = page.getByRole("region", { name: "Simulate" });
    await panel.getByRole("button", { name: "Simulate" }).click();
    await panel.getByRole("button", { name: "Stop the simulation" }).click();
    await panel
      .getByRole("status")
      .getByText(/^stopped after \d/)
      .waitFor();
    await panel.getByRole("button", { name: "Simulate" }).waitFor();
    expect(await panel.getByRole("table").count()).toBe(0);
  });

  test("4,096 rollouts are drawn, and keys go to the last of them and into time", async () => {
    const { pool } = stack.api.database;
    const runId = await seedRun(pool, { config: { name: "wide" } });
    const bounds = { init: 512, run: 1024, evaluate: 256 };
    const { rolloutIds } = await seedSchedule(pool, runId, { step: 1, groups: 512, groupSize: 8, bounds });
    await open(runId);
    const gantt = page.getByRole("application", { name: /^4096 rollouts/ });
    const colours = () => canvasColours(gantt.locator("canvas").nth(1));
    await expect.poll(colours).toBeGreaterThan(4);
    // The canvas is as large as what is seen of the lanes, however many there are.
    const sizes = await gantt.evaluate((element) => ({
      all: element.scrollHeight,
      seen: element.clientHeight,
      canvas: element.querySelectorAll("canvas")[1]?.clientHeight ?? 0,
    }));
    expect(sizes.canvas).toBe(sizes.seen);
    expect(sizes.all).toBeGreaterThan(4096 * 4);
    await gantt.focus();
    await page.keyboard.press("End");
    await page.getByRole("status").getByText("train-512 sample 8").waitFor();
    expect(await gantt.evaluate((element) => element.scrollTop)).toBeGreaterThan(sizes.all / 2);
    await expect.poll(colours).toBeGreaterThan(4);
    await page.keyboard.press("+");
    await page.waitForURL(/from=\d+.*to=\d+/);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/t/${rolloutIds.at(-1)}`));
    expect(pageErrors).toEqual([]);
  });
});
