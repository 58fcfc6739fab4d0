/**
 * The Schedule tab and the pools where something else than the usual is on: a prediction against what was, a simulation
 * that is stopped, sandboxes that people keep, a narrow window, and a step of 4,096 rollouts. Rows are seeded, everything else is real.
 */
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, openSignedIn, patienceMs } from "./testing/browser.ts";
import { canvasColours } from "./testing/canvas-colours.ts";
import { frameMoves } from "./testing/frame-moves.ts";
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

  test("pages scroll in their own boxes, wide or narrow: rail and top bar stay", async () => {
    const places = [`/runs/${story.runId}?tab=schedule`, "/schedule", "/settings", "/runs/new?preset=swe-offline"];
    for (const width of [1440, 900]) {
      await page.setViewportSize({ width, height: 900 });
      for (const place of places) {
        await page.goto(stack.url + place);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page.getByRole("table").or(page.getByTestId("gantt")).or(page.locator("[data-field]")).first().waitFor();
        expect([width, place, await frameMoves(page)]).toEqual([width, place, ""]);
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("a dialog begins at its first field, else at the button that does nothing", async () => {
    const focused = () => page.evaluate(() => document.activeElement?.closest("label, div")?.textContent ?? "");
    await page.goto(`${stack.url}/schedule?set=sandbox`);
    await page.getByRole("dialog").waitFor();
    await expect.poll(focused).toContain("Size");
    await open(story.runId);
    await page.getByRole("button", { name: "Drain run" }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Cancel");
    await page.keyboard.press("Escape");
  });

  test("what is kept for people takes room, and the pool says so", async () => {
    const { pool } = stack.api.database;
    const kept = await seedSandbox(pool, {
      ...{ runId: story.runId, rolloutId: story.rolloutIds[0] ?? "", state: "kept" as const, keepMinutes: 30 },
    });
    await page.goto(`${stack.url}/schedule`);
    const sandboxes = page.locator('[data-pool="sandbox"]');
    await sandboxes.getByText("and 1 kept").waitFor();
    await sandboxes.getByRole("img", { name: /kept for people 1/ }).waitFor();
    await pool.query("delete from sandboxes where id = $1", [kept]);
  });

  test("what was left out of training is told by task and length", async () => {
    const { pool } = stack.api.database;
    const runId = await seedRun(pool, { config: { name: "starving" } });
    const bounds = { init: 8, run: 8, evaluate: 8 };
    await seedSchedule(pool, runId, { step: 1, groups: 4, groupSize: 4, bounds, elapsedS: 400 });
    await pool.query("update rollouts set turns = 9 where run_id = $1", [runId]);
    await open(runId);
    const panel = page.getByRole("region", { name: "Left out of training" });
    expect(await panel.count()).toBe(0);
    await pool.query("update groups set set_aside = 'stale' where run_id = $1 and position = 0", [runId]);
    await open(runId);
    await panel.getByRole("row", { name: /key-chain 8–15 16 25/ }).waitFor();
    await panel.getByRole("columnheader", { name: "Too old" }).waitFor();
  });

  test("a run that ended before its first step says so", async () => {
    const runId = await seedRun(stack.api.database.pool, {
      config: { name: "stopped early" },
      status: "stopped",
      endedAt: new Date().toISOString(),
    });
    await page.goto(`${stack.url}/runs/${runId}?tab=schedule`);
    await page.getByText("The run is stopped: it ended before its first step.").waitFor();
  });

  test("pools that can't be read are told with their age, or without any; back again, they are as they were", async () => {
    await page.goto(`${stack.url}/schedule`);
    await page.getByRole("table", { name: "Pools" }).waitFor();
    const alert = page.getByRole("alert").filter({ hasText: "Could not read the pools" });
    const away = "**/api/trpc/**";
    await page.route(away, (route) => route.abort());
    await alert.getByText(/shown: as of \d+.*ago/).waitFor();
    expect(await page.getByRole("table", { name: "Pools" }).isVisible()).toBe(true);
    await page.reload();
    await alert.waitFor();
    expect(await page.getByRole("table", { name: "Pools" }).count()).toBe(0);
    expect(await alert.getByText("shown:").count()).toBe(0);
    await page.unroute(away);
    await page.getByRole("table", { name: "Pools" }).waitFor();
    await alert.waitFor({ state: "detached" });
    expect(pageErrors).toEqual([]);
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
