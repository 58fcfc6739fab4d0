/**
 * The main walk as a person takes it, in real Chromium on the real stack: sign in, launch from the form, watch it live to its
 * end without a reload, open a rollout, read its tokens, share the link; stop a run; compare two; meet an error beside its field.
 */
import { presets } from "@rolldeck/contracts/presets";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, launchBrowser, patienceMs } from "./testing/browser.ts";
import { demoPolicy, hostileText, hostileTurn } from "./testing/demo-policy.ts";
import { startWalkStack, type WalkStack } from "./testing/walk-stack.ts";

/** A rollout of the newest step that the update trained. */
async function trainedRollout(stack: WalkStack, runId: string): Promise<string> {
  const matrix = await stack.rolldeck.readMatrix({ runId });
  for (const cell of matrix.groups.flatMap((group) => group.cells)) {
    const { fate } = await stack.rolldeck.getRollout(cell.rolloutId);
    if (fate.state === "trained") return cell.rolloutId;
  }
  throw new Error("no rollout of the newest step was trained");
}

/** A turn in which the policy said something hostile. */
async function hostileRollout(stack: WalkStack, runId: string): Promise<{ rolloutId: string; turn: number }> {
  const matrix = await stack.rolldeck.readMatrix({ runId, step: 1 });
  for (const { rolloutId } of matrix.groups.flatMap((group) => group.cells)) {
    const { turns } = await stack.rolldeck.readTurns({ rolloutId });
    const found = turns.find((each) => each.sampled.text.includes("<img"));
    if (found) return { rolloutId, turn: found.turn };
  }
  throw new Error("the scripted policy said nothing hostile in step 1");
}

describe.skipIf(chromiumMissing)(`the main walk, ${chromiumName}`, () => {
  let stack: WalkStack;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const pageErrors: string[] = [];
  const outside: string[] = [];
  let firstRun = "";
  let hostileRun = "";

  beforeAll(async () => {
    stack = await startWalkStack({ policy: demoPolicy });
    browser = await launchBrowser();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    page.setDefaultTimeout(patienceMs);
    page.on("pageerror", (error) => pageErrors.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(stack.url) && !request.url().startsWith("data:")) outside.push(request.url());
    });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("without a session every page leads to sign-in; the link signs in once", async () => {
    await page.goto(`${stack.url}/runs`);
    expect(new URL(page.url()).pathname).toBe("/sign-in");
    const link = await stack.signInLink();
    await page.goto(link);
    await page.waitForURL("**/runs");
    await page.getByText("No runs yet").waitFor();
    const other = await browser.newContext();
    const again = await other.newPage();
    await again.goto(link);
    expect(new URL(again.url()).pathname).toBe("/sign-in");
    await other.close();
  });

  test("a bad setting shows its error beside its field, and launching leads there", async () => {
    await page.goto(`${stack.url}/runs/new?preset=smoke`);
    const field = page.locator('[data-field="algorithm.groupSize"]');
    await field.locator("input").fill("0");
    await field.getByTestId("field-error").waitFor();
    await page.getByRole("button", { name: "Launch run" }).click();
    await page.waitForFunction(() => document.activeElement?.getAttribute("data-testid") === "issue-summary");
    expect(new URL(page.url()).pathname).toBe("/runs/new");
    await field.locator("input").fill("4");
    await page.getByText("no errors", { exact: true }).waitFor();
    expect(await page.getByTestId("field-error").count()).toBe(0);
  });

  test("form and YAML are one config", async () => {
    await page.getByRole("tab", { name: "YAML" }).click();
    const yaml = page.getByLabel("Config as YAML");
    const text = await yaml.inputValue();
    // Room for a whole answer in a turn: the smoke preset cuts every rollout short.
    await yaml.fill(
      text.replace(/^name: .*$/m, "name: walked").replace("maxTokensPerTurn: 16", "maxTokensPerTurn: 32"),
    );
    await page.getByRole("tab", { name: "Form" }).click();
    expect(await page.locator('[data-field="name"] input').inputValue()).toBe("walked");
    await page.locator('[data-field="seed"] input').fill("7");
    expect(await page.locator('[data-field="agent.sampling.temperature"] input').isEnabled()).toBe(true);
    await page.locator('[data-field="agent.hints"]').getByLabel("steps-left").check();
    await page.locator('[data-field="evaluation.passAt"] input').fill("1, 2");
    await page.locator('[data-field="evaluation.samplesPerInstance"] input').fill("2");
    await page.locator('[data-field="taskSets[0].options"] textarea').fill("- not a mapping");
    await page.locator('[data-field="taskSets[0].options"]').getByTestId("field-error").waitFor();
    await page.locator('[data-field="taskSets[0].options"] textarea').fill("");
    await page.getByRole("tab", { name: "YAML" }).click();
    const written = await yaml.inputValue();
    expect(written).toContain("seed: 7");
    expect(written).toMatch(/hints:\s+- steps-left/);
    expect(written).toMatch(/passAt:\s+- 1\s+- 2/);
    // The scripted policy knows no hints.
    await page.getByRole("tab", { name: "Form" }).click();
    await page.locator('[data-field="agent.hints"]').getByLabel("the task's own").check();
    await page.getByRole("tab", { name: "YAML" }).click();
    expect(await yaml.inputValue()).not.toContain("hints");
  });

  test("launches once and is watched to its end without a reload", async () => {
    await page.getByText("no errors", { exact: true }).waitFor();
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/runs\/[0-9a-z]{20,}$/);
    firstRun = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await page.evaluate(() => document.documentElement.setAttribute("data-not-reloaded", "yes"));
    await page.getByText("Completed", { exact: true }).waitFor();
    await page.waitForFunction(() => document.querySelector('[data-testid="run-step"]')?.textContent === "2");
    await page.locator('figure[aria-label^="Reward"] .recharts-line-curve').first().waitFor({ state: "attached" });
    expect(await page.evaluate(() => document.documentElement.getAttribute("data-not-reloaded"))).toBe("yes");
    // At this width two large charts, then three in a row.
    const tops = await page
      .locator("main figure")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
    expect([tops[0] === tops[1], new Set(tops.slice(2, 5)).size, tops[4] === tops[5]]).toEqual([true, 1, false]);
    const { items } = await stack.rolldeck.listRuns();
    expect(items.map((run) => run.name)).toEqual(["walked"]);
  });

  test("a rollout opens from the matrix; its tokens, log-probs and masks can be read", async () => {
    await page.keyboard.press("2");
    await page.locator("[data-rollout]").first().waitFor();
    expect(await page.locator("[data-rollout]").count()).toBe(16);
    const trained = await trainedRollout(stack, firstRun);
    await page.locator("[data-rollout]").first().focus();
    for (let moves = 0; moves < 16; moves += 1) {
      if ((await page.evaluate(() => document.activeElement?.getAttribute("data-rollout"))) === trained) break;
      await page.keyboard.press("ArrowRight");
    }
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/runs/${firstRun}/t/${trained}**`);
    await page.getByRole("article", { name: "Turn 0" }).waitFor();
    await page.keyboard.press("t");
    const sampled = page.locator("[data-token]:not(.hatched)").first();
    await sampled.waitFor();
    await sampled.hover();
    const tip = page.getByRole("tooltip");
    await tip.waitFor();
    expect(await tip.textContent()).toMatch(/Sampler log-prob.*Trainer log-prob.*Ratio.*Advantage.*Mask/);
    await page.locator("[data-token].hatched").first().hover();
    await page.waitForFunction(() =>
      document.querySelector('[role="tooltip"]')?.textContent?.includes("template: not sampled"),
    );
  });

  test("a deep link shows the same place after a reload", async () => {
    await page.locator("[data-token]:not(.hatched)").nth(2).click();
    await page.waitForURL(/tok=\d+/);
    const before = {
      address: page.url(),
      chosen: await page.locator("[data-token].outline-2").allTextContents(),
      detail: await page.getByRole("region", { name: "Token", exact: true }).textContent(),
    };
    await page.reload();
    await page.locator("[data-token].outline-2").first().waitFor();
    expect({
      address: page.url(),
      chosen: await page.locator("[data-token].outline-2").allTextContents(),
      detail: await page.getByRole("region", { name: "Token", exact: true }).textContent(),
    }).toEqual(before);
  });

  test("a run is stopped after a confirmation that names what is lost", async () => {
    const { runId } = await stack.rolldeck.launchRun({
      ...presets.smoke.config,
      agent: { ...presets.smoke.config.agent, sampling: { temperature: 1, maxTokensPerTurn: 32 } },
      algorithm: { ...presets.smoke.config.algorithm, groupsPerStep: 16 },
      name: hostileText,
      tags: ["<b>tag</b>"],
      budget: { steps: 100_000 },
    });
    hostileRun = runId;
    await page.goto(`${stack.url}/runs/${runId}`);
    await page.waitForFunction(() => Number(document.querySelector('[data-testid="run-step"]')?.textContent) >= 1);
    await page.getByRole("button", { name: "Stop run" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("can't be resumed").waitFor();
    await dialog.getByRole("button", { name: "Stop run" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Stop run" }).count()).toBe(0);
  });

  test("two runs are compared: differences first, then a verdict and one line each", async () => {
    await page.goto(`${stack.url}/runs`);
    await page.locator("[data-run]").nth(1).waitFor();
    for (const key of ["j", "x", "j", "x", "c"]) await page.keyboard.press(key);
    await page.waitForURL(/\/compare\?runs=/);
    const differences = page.getByRole("region", { name: "Config differences" });
    await differences.getByText("budget.steps").waitFor();
    expect(await page.getByRole("table", { name: "Verdict" }).getByRole("row").count()).toBe(3);
    await page.locator('figure[aria-label^="Reward"]').waitFor();
  });

  test("what models, tools and people write is text everywhere", async () => {
    const { rolloutId, turn } = await hostileRollout(stack, hostileRun);
    await page.goto(`${stack.url}/runs/${hostileRun}/t/${rolloutId}?turn=${turn}`);
    await page.getByText(hostileTurn).first().waitFor();
    await page.keyboard.press("t");
    await page.locator("[data-token]").first().waitFor();
    for (const path of [`/runs/${hostileRun}?tab=log&turns=true`, `/compare?runs=${firstRun},${hostileRun}`]) {
      await page.goto(`${stack.url}${path}`);
      await page.getByText(hostileText.slice(0, 12)).first().waitFor();
    }
    await page.goto(`${stack.url}/runs`);
    await page.getByText(hostileText.slice(0, 12)).first().waitFor();
    expect(await page.title()).not.toBe("P");
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
    expect(outside).toEqual([]);
    expect(pageErrors).toEqual([]);
  });
});
