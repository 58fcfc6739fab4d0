/**
 * Where a run's time goes, what other bounds would change, and what runs share, in real Chromium. Rows are seeded and no worker moves
 * them on; API, simulator and pages are the real ones.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, openSignedIn } from "./testing/browser.ts";
import { canvasColours } from "./testing/canvas-colours.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";
import { type ScheduleStory, seedScheduleStory } from "./testing/schedule-story.ts";

describe.skipIf(chromiumMissing)(`schedules and pools, ${chromiumName}`, () => {
  let stack: PageStack;
  let browser: Browser;
  let page: Page;
  let story: ScheduleStory;
  let pageErrors: readonly string[];
  const open = async (query = "") => {
    await page.goto(`${stack.url}/runs/${story.runId}?tab=schedule${query}`);
    await page.getByTestId("gantt").waitFor();
  };
  const row = async <T>(sql: string, values: readonly unknown[] = []): Promise<T> =>
    (await stack.api.database.pool.query(sql, [...values])).rows[0];
  const params = () => new URL(page.url()).searchParams;

  beforeAll(async () => {
    stack = await startPageStack();
    story = await seedScheduleStory(stack.api.database.pool);
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("the tab tells where time goes, who waits for what, and draws every rollout", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}`);
    await page.getByRole("tab", { name: "Schedule" }).click();
    await page.waitForURL(/tab=schedule/);
    const time = page.getByRole("region", { name: "Where time goes" });
    await time.getByText("waits: grading slot").waitFor();
    await time.getByText("model", { exact: true }).waitFor();
    await time.locator('[data-part="gradeSlot"]').hover();
    await page.getByRole("tooltip").getByText("grading slots were in use").waitFor();
    const waiting = page.getByRole("region", { name: "Waiting now" });
    await waiting.getByText("8 rollouts are in evaluate", { exact: false }).waitFor();
    await waiting.getByText("Raise bounds.evaluate, now 8.", { exact: false }).waitFor();
    await page.getByRole("application", { name: /128 rollouts/ }).waitFor();
    for (const lane of ["Init slots", "Run slots", "Grading slots", "Sandboxes", "Model calls"])
      await page.getByRole("img", { name: new RegExp(`^${lane}:`) }).waitFor();
    const colours = await canvasColours(page.locator("[data-testid=gantt] canvas").nth(1));
    expect(colours).toBeGreaterThan(4);
  });

  test("the tab tells what the engine bears, how old that is, and why fewer run than the bound lets", async () => {
    await open();
    const engine = page.getByRole("region", { name: "Engine now" });
    await engine.getByText("No load reading yet.").waitFor();
    await engine.getByText("bounds.run; adaptive is off").waitFor();
    const read = (ago: string) =>
      row(
        `update gpu_workers set load = jsonb_build_object('at', extract(epoch from now() - $1::interval) * 1000,
           'running', 18, 'waiting', 1, 'cacheUse', 0.853)`,
        [ago],
      );
    await row(
      `update runs set dispatch = '{"adaptive": true}', run_limit = 21, run_limit_since = now() - interval '40 seconds',
         run_limit_reason = 'fewer at once: 3 requests wait inside the engine' where id = $1`,
      [story.runId],
    );
    // Of a moment to come: it stays young while the page is looked at.
    await read("-1 hour");
    await engine.getByText("18 requests").waitFor();
    await engine.getByText("1 request", { exact: true }).waitFor();
    await engine.getByText("85\u2009%").waitFor();
    await engine.getByText("of 24 rollouts").waitFor();
    await engine.getByText("fewer at once: 3 requests wait inside the engine", { exact: false }).waitFor();
    await engine.locator('[data-number="waiting"]').hover();
    await page.getByRole("tooltip").getByText("the fewer of its last two readings").waitFor();
    await page.mouse.move(2, 2);
    await read("2 minutes");
    await engine.getByText("too old to go by", { exact: false }).waitFor();
    await row("update runs set dispatch = null, run_limit = null where id = $1", [story.runId]);
  });

  test("keys zoom, pan and choose; what is shown is in the address; Enter opens the rollout", async () => {
    await open();
    await page.keyboard.press("+");
    await page.waitForURL(/from=\d+.*to=\d+/);
    const width = Number(params().get("to")) - Number(params().get("from"));
    await page.keyboard.press("+");
    await expect.poll(() => Number(params().get("to")) - Number(params().get("from"))).toBeLessThan(width);
    const from = Number(params().get("from"));
    const gantt = page.getByTestId("gantt");
    await gantt.focus();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => Number(params().get("from"))).toBeLessThan(from);
    await page.reload();
    await gantt.waitFor();
    expect(params().get("from")).not.toBeNull();
    await page.keyboard.press("0");
    await expect.poll(() => params().get("from")).toBeNull();
    await gantt.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByRole("status").getByText("train-1 sample 2").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/t/${story.rolloutIds[1]}`));
  });

  test("a group is held and let go from its rollouts, each told before it is done", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}?tab=rollouts`);
    await page.locator('[data-kind="run"]').first().hover();
    for (const [action, title, then] of [
      ["Hold group", "Hold this group?", "Resume group"],
      ["Resume group", "Let this group go on?", "Hold group"],
    ] as const) {
      await page.getByRole("button", { name: action }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(title).waitFor();
      await dialog.getByRole("button", { name: action }).click();
      await page.getByRole("button", { name: then }).waitFor();
    }
    const changes =
      "select array_agg(body->>'held' order by seq) as held from events where run_id = $1 and type = 'hold-changed'";
    expect(await row(changes, [story.runId])).toEqual({ held: ["true", "false"] });
  });

  test("one cursor reads lanes and strips; keys go from lane to lane of another step", async () => {
    await open("&step=1");
    const gantt = page.getByTestId("gantt");
    const box = await gantt.boundingBox();
    if (!box) throw new Error("the lanes have no place");
    await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
    await page
      .getByRole("status")
      .getByText(/run slots \d/)
      .waitFor();
    await page.getByText(/gathered after .* and took 20/).waitFor();
    await page.mouse.move(2, 2);
    await gantt.focus();
    await page.keyboard.press("Home");
    for (let lane = 0; lane < 22; lane++) await page.keyboard.press("ArrowDown");
    await page.getByRole("status").getByText("train-3 sample 7").waitFor();
    await page.getByRole("button", { name: "Newer step" }).click();
    await expect.poll(() => params().get("step")).toBeNull();
  });

  test("a simulation predicts, is held against what was, and its bounds are applied", async () => {
    await open();
    const panel = page.getByRole("region", { name: "Simulate" });
    for (const box of await panel.getByRole("checkbox").all()) await box.uncheck();
    await panel.getByRole("checkbox", { name: "bounded" }).check();
    await panel.getByRole("button", { name: "Simulate" }).click();
    await panel.getByRole("table", { name: "Predicted step times" }).waitFor();
    await panel
      .getByTestId("predicted")
      .getByText(/the prediction is off by/)
      .waitFor();
    await panel.getByRole("cell", { name: /^pipeline\s*present/ }).waitFor();
    await panel.getByRole("cell", { name: "bounded", exact: true }).waitFor();
    await panel.getByRole("button", { name: "Apply" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByText(/bounds\.\w+: \d+ → \d+/)
      .first()
      .waitFor();
    await dialog.getByRole("button", { name: "Change bounds" }).click();
    await dialog.waitFor({ state: "detached" });
    const { dispatch } = await row<{ dispatch: { bounds: Record<string, number> } }>(
      "select dispatch from runs where id = $1",
      [story.runId],
    );
    expect(dispatch.bounds).not.toEqual({ init: 12, run: 24, evaluate: 8 });
  });

  test("pools show each run's share; the owner sets sizes, reserves and quotas", async () => {
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Schedule" }).click();
    await page.waitForURL("**/schedule");
    const pools = page.getByRole("table", { name: "Pools" });
    const sandboxes = pools.locator('[data-pool="sandbox"]');
    await sandboxes.getByText("of 96").waitFor();
    await sandboxes.getByRole("img", { name: /mend the encoder, pipeline \d+, key chain, GRPO \d+/ }).waitFor();
    const first = page.getByRole("table", { name: "Shares of runs" }).locator("tbody tr").first();
    await first.getByText("key chain, GRPO").waitFor();
    await pools.getByRole("button", { name: "Set sandboxes" }).click();
    await page.waitForURL(/set=sandbox/);
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Size").fill("120");
    await dialog.getByLabel("Kept for evaluation").fill("12");
    await dialog.getByRole("button", { name: "Set pool" }).click();
    await sandboxes.getByText("of 120").waitFor();
    expect(await row("select size, evaluation_reserve as reserve from pools where resource = 'sandbox'")).toEqual({
      size: 120,
      reserve: 12,
    });
    const quotas = page.getByRole("region", { name: "Quotas" });
    await quotas.getByLabel("Project").fill("south");
    await quotas.getByLabel("Pool").selectOption("runSlot");
    await quotas.getByLabel("Quota", { exact: true }).fill("16");
    await quotas.getByRole("button", { name: "Set quota" }).click();
    await quotas.getByText("of 16").waitFor();
    await quotas.getByRole("button", { name: "Take away" }).click();
    await quotas.getByText("No project has one").waitFor();
  });

  test("draining, priorities and holds say what they do before they are done", async () => {
    await open();
    await page.getByRole("button", { name: "Change dispatch" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("A bound that shrinks stops nothing", { exact: false }).waitFor();
    await dialog.getByLabel("Priority").fill("10");
    expect(await dialog.getByRole("button", { name: "Change" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Priority").fill("5");
    await dialog.getByRole("button", { name: "Change" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await row("select dispatch ->> 'priority' as priority from runs where id = $1", [story.runId])).toEqual({
      priority: "5",
    });
    await page.getByRole("button", { name: "Hold step" }).click();
    await dialog.getByText("the next ones are not admitted", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Hold step" }).click();
    await page.getByText("held", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Waiting now" }).getByText("Its group is held.").first().waitFor();
    await page.getByRole("button", { name: "Resume step" }).click();
    await dialog.getByRole("button", { name: "Resume step" }).click();
    await page.getByRole("button", { name: "Drain run" }).click();
    await dialog.getByText("Nothing is begun anew", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Drain run" }).click();
    await page.getByText("draining", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Resume run" }).click();
    await page.getByText("draining", { exact: true }).waitFor({ state: "detached" });
  });

  test("a rollout is cancelled from its own page", async () => {
    const { id } = await row<{ id: string }>(
      "select id from rollouts where run_id = $1 and state = 'active' order by id limit 1",
      [story.runId],
    );
    await page.goto(`${stack.url}/runs/${story.runId}/t/${id}`);
    await page.getByRole("button", { name: "Cancel rollout" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("stay readable and are never trained", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Cancel rollout" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await row("select outcome, ending from rollouts where id = $1", [id])).toEqual({
      outcome: "cancelled",
      ending: "cancelled",
    });
  });

  test("a run that has not begun says what comes, and is simulated over assumed stages", async () => {
    await page.goto(`${stack.url}/runs/${story.fresh}?tab=schedule`);
    await page.getByRole("heading", { name: "Nothing is scheduled yet" }).waitFor();
    await page.goto(`${stack.url}/runs/${story.runId}?tab=schedule&step=77`);
    await page.getByRole("heading", { name: "There is no step 77" }).waitFor();
    await page.getByRole("button", { name: "Show the newest" }).click();
    await page.getByTestId("gantt").waitFor();
    expect(pageErrors).toEqual([]);
  });
});
