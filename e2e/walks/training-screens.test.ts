/**
 * The screens of what training leaves: a run's cost, its checkpoints, served ones, the fleet, and the launch form's settings for them.
 * Rows are seeded, everything else is real. What can't be done says why in words that the keyboard reaches; every state is told.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, openSignedIn } from "./testing/browser.ts";
import { frameMoves } from "./testing/frame-moves.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";
import { seedTrainingStory, storyPrices, type TrainingStory } from "./testing/training-story.ts";

describe.skipIf(chromiumMissing)(`screens of training, ${chromiumName}`, () => {
  let stack: PageStack;
  let browser: Browser;
  let page: Page;
  let pageErrors: readonly string[];
  let story: TrainingStory;
  const openTab = (runId: string, query = "") => page.goto(`${stack.url}/runs/${runId}?tab=checkpoints${query}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });

  beforeAll(async () => {
    stack = await startPageStack({}, { prices: storyPrices, fleetSecret: "a-secret-of-this-test-that-is-long-enough" });
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("before there is any, Settings says how a host and a served checkpoint come to be", async () => {
    await page.goto(`${stack.url}/settings`);
    await region("GPU hosts").getByText("npx rolldeck fleet add-host").waitFor();
    await region("Served checkpoints").getByText("A run's Checkpoints tab serves one").waitFor();
    story = await seedTrainingStory(stack.api.database.pool);
  });

  test("a host's and a worker's state says what it means, why it is so, and what would help", async () => {
    await page.goto(`${stack.url}/settings`);
    const hosts = page.getByRole("table", { name: "GPU hosts" });
    await hosts.getByRole("row", { name: /rack1.*4 × NVIDIA H100/ }).waitFor();
    for (const [name, state, meaning] of [
      ["rack1", "ready", "takes workers"],
      ["rack2", "draining", "nothing new comes"],
      ["rack3", "lost", "does not answer"],
      ["here", "unseen", "not answered yet"],
    ] as const) {
      const chip = hosts.getByRole("row", { name: new RegExp(`^${name} `) }).getByText(state, { exact: true });
      expect([name, await chip.getAttribute("title")]).toEqual([name, expect.stringContaining(meaning)]);
    }
    const workers = page.getByRole("table", { name: "GPU workers of runs" });
    await workers.getByText("all 4 devices that would do are taken").first().waitFor();
    await workers.getByText("install the NVIDIA Container Toolkit").waitFor();
    await workers
      .getByRole("button", { name: /^Copy GPU-/ })
      .first()
      .waitFor();
  });

  test("a run's page says of its workers on the fleet where each is, why one waits, and what it printed last", async () => {
    await page.goto(`${stack.url}/runs/${story.splitId}`);
    const panel = region("GPU workers");
    await panel.getByText("2 of 3 ready on rack1; sampler 2 all 4 devices that would do are taken").waitFor();
    // One that waits is not overlooked: the list is open.
    const workers = page.getByRole("table", { name: "GPU workers of this run" });
    await workers.getByRole("row", { name: /^trainer .*ready.*rack1/ }).waitFor();
    await workers.getByRole("row", { name: /^sampler 2 .*queued.*all 4 devices/ }).waitFor();
    await workers.getByRole("button", { name: "Log of the trainer" }).focus();
    await page.keyboard.press("Enter");
    const log = region("Log of the trainer");
    await log.getByText("It has printed nothing yet.").waitFor();
    await page.waitForURL(/[?&]log=/);
    await page.reload();
    await log.getByText("It has printed nothing yet.").waitFor();
    await page.keyboard.press("w");
    await workers.waitFor({ state: "detached" });
    await page.waitForURL(/[?&]workers=false/);
    await page.reload();
    await panel.getByText("2 of 3 ready").waitFor();
    expect(await workers.count()).toBe(0);
    await page.goto(`${stack.url}/runs/${story.runId}`);
    await page.getByRole("heading", { level: 1, name: "qwen3-0.6b lora" }).waitFor();
    expect(await panel.count()).toBe(0);
  });

  test("what the workers of a run are can't be read: it says so", async () => {
    await page.route(/fleet\.ofRun/, (route) => route.abort());
    await page.goto(`${stack.url}/runs/${story.splitId}`);
    await region("GPU workers").getByRole("alert").waitFor();
    await page.unroute(/fleet\.ofRun/);
  });

  test("a reader of a run's checkpoints is asked for, told of while it waits, and given back", async () => {
    await openTab(story.givenBackId);
    const bar = region("Worker that reads the checkpoints");
    await bar.getByText(/^No worker of this run is on the fleet now/).waitFor();
    await page.getByRole("button", { name: "Export" }).and(page.locator(":disabled")).waitFor();
    await bar.getByRole("button", { name: "Wake a reader" }).click();
    await bar.getByText("The reader waits for its place on the fleet.").waitFor();
    await region("GPU workers").getByText("0 of 1 ready; reader waits for its place").waitFor();
    // The supervisor's word comes without a reload.
    const reader = `update fleet_workers set state = 'ready', host = 'rack1', ready_at = now() where role = 'reader'`;
    await stack.api.database.pool.query(reader);
    await bar.getByText("The reader answers on host rack1.").waitFor();
    await page.getByRole("link", { name: "Export" }).waitFor();
    await bar.getByRole("button", { name: "Give the reader back" }).click();
    await bar.getByRole("button", { name: "Give the reader back" }).waitFor({ state: "detached" });
  });

  test("lists that can't be read again say so and stay", async () => {
    await page.goto(`${stack.url}/settings`);
    await region("GPU hosts").getByText("rack1", { exact: true }).first().waitFor();
    await region("Served checkpoints").getByText("web search").first().waitFor();
    await page.route("**/api/trpc/**", (route) => route.abort());
    for (const [name, shown] of [
      ["GPU hosts", "rack1"],
      ["Served checkpoints", "qwen3-0.6b lora, web search"],
    ] as const) {
      await region(name)
        .getByRole("alert")
        .getByText(/shown: as of/)
        .waitFor();
      expect([name, await region(name).getByText(shown, { exact: true }).first().isVisible()]).toEqual([name, true]);
    }
    await page.unroute("**/api/trpc/**");
  });

  test("what can't be done with checkpoints is written above them", async () => {
    await openTab(story.forkId);
    await page.getByText(/^Restoring: The run is running: stop it first/).waitFor();
    await page.getByText(/^Export and serving: This server knows no GPU worker/).waitFor();
    await region("Lineage").getByText("Began with version 50 of").waitFor();
    await openTab(story.runId, "&version=20");
    await page.getByRole("status").getByText("Version 20 is not among the checkpoints").waitFor();
    const row = page.getByRole("row").filter({ has: page.getByRole("cell", { name: "50", exact: true }) });
    await row.getByText("served", { exact: true }).waitFor();
    await page.keyboard.press("j");
    await page.getByRole("status").getByText("Version 20").waitFor({ state: "detached" });
  });

  test("without a checkpoint it says when the first comes, and of an ended run that none does", async () => {
    await openTab(story.freshId);
    await page.getByText("the first comes with step 10").waitFor();
    await openTab(story.lostId);
    await page.getByText("was to save one every 10 steps and ended after 4 steps").waitFor();
  });

  test("a page that stands still reads what a tab has not read yet", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}`);
    await page.getByRole("heading", { level: 1, name: "qwen3-0.6b lora" }).waitFor();
    await page.keyboard.press("z");
    await page.getByText("frozen", { exact: true }).waitFor();
    await page.getByRole("tab", { name: /Checkpoints/ }).click();
    await page.getByRole("table", { name: "Checkpoints" }).waitFor();
  });

  test("a run's cost has its currency, and each part its definition for the keyboard too", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}`);
    const cost = page.getByTestId("run-cost");
    await expect
      .poll(() => cost.textContent())
      .toBe("cost 37.4\u2009EUR of 50.0\u2009EUR · 0.0410\u2009EUR a trained group");
    await cost.focus();
    const words = page.getByRole("tooltip");
    await words.getByText(/GPUs/).first().waitFor();
    await words
      .getByText(/groups of which an update was sent a row/)
      .first()
      .waitFor();
  });

  test("the form says what a group that is off means, and in which currency a cost limit is", async () => {
    await page.goto(`${stack.url}/runs/new`);
    const field = (name: string) => page.locator(`[data-field="${name}"]`);
    await field("backend.lora").getByText("off = all weights").waitFor();
    await field("checkpoints.keepBest").getByText("off = the newest only").waitFor();
    await field("budget.cost").getByText("In EUR: an hour of GPU 2.50, an hour of sandbox 0.0400.").waitFor();
    await field("backend.lora").getByRole("checkbox", { name: "LoRA" }).check();
    await field("backend.lora.rank").getByText("1 … 512").waitFor();
  });

  test.each([1440, 1024])("at %i px tables scroll in their own boxes and the frame stays", async (width) => {
    await page.setViewportSize({ width, height: width === 1440 ? 900 : 700 });
    for (const path of [`/runs/${story.runId}?tab=checkpoints`, "/settings", "/compare", `/runs/${story.forkId}`]) {
      await page.goto(`${stack.url}${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect([path, await frameMoves(page)]).toEqual([path, ""]);
    }
    expect(pageErrors).toEqual([]);
  });
});
