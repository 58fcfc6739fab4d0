/**
 * A launched comparison in the browser: its page shows the numbers that the API gives and that anybody can recompute, each backend's own
 * under its own name, and where definitions differ. Points are seeded, everything else is real.
 */
import { ComparisonDetail, LaunchedComparison } from "@rolldeck/contracts/api/comparisons";
import { seedMetric } from "@rolldeck/db/testing/seed-run";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jsonPost, smallConfig } from "../../apps/api/testing/start-api.ts";
import { formatNumber } from "../../apps/web/src/format/numbers.ts";
import { chromiumMissing, chromiumName, openSignedIn } from "./testing/browser.ts";
import { frameMoves } from "./testing/frame-moves.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";

const mismatch = { slow: [0.0125, 0.0321], fast: [0.5, 0.75] };

describe.skipIf(chromiumMissing)(`a comparison, ${chromiumName}`, () => {
  let stack: PageStack;
  let browser: Browser;
  let page: Page;
  let pageErrors: readonly string[];
  let launched: LaunchedComparison;
  const detail = async () =>
    ComparisonDetail.parse(await (await stack.api.fetch(`/api/v1/comparisons/${launched.comparisonId}`)).json());
  const open = async (query = "") => {
    await page.goto(`${stack.url}/comparisons/${launched.comparisonId}${query}`);
    await page.getByRole("heading", { level: 1, name: "two rates" }).waitFor();
  };

  beforeAll(async () => {
    stack = await startPageStack();
    const body = {
      name: "two rates",
      config: smallConfig,
      variants: [{ label: "slow" }, { label: "fast", change: { algorithm: { learningRate: 1e-3 } } }],
    };
    launched = LaunchedComparison.parse(await (await stack.api.fetch("/api/v1/comparisons", jsonPost(body))).json());
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("before its first step it says what it waits for, and what definitions there are", async () => {
    await open();
    await page.getByText("The first point comes with the first finished step.").first().waitFor();
    await page.getByText("a backend's own numbers come with its first update").waitFor();
    const notes = page.getByRole("region", { name: "Where definitions differ" });
    for (const word of ["SkyRL", "VeRL", "tinker-cookbook"]) await notes.getByText(word).first().waitFor();
    await page.getByRole("region", { name: "Config differences" }).getByText("algorithm.learningRate").waitFor();
    expect(await page.getByRole("table", { name: "Variants" }).getByText("Queued").count()).toBe(2);
  });

  test("page and API agree: shared numbers by run, native ones under their own names", async () => {
    const [slow, fast] = launched.runs.map(({ runId }) => runId);
    const { pool } = stack.api.database;
    await seedMetric(pool, slow ?? "", "shared/mismatch-logprob", mismatch.slow);
    await seedMetric(pool, fast ?? "", "shared/mismatch-logprob", mismatch.fast);
    await seedMetric(pool, slow ?? "", "shared/reward", [0.25, 0.5]);
    await seedMetric(pool, slow ?? "", "native/gpu-worker/grad_norm", [2.5]);
    await open();
    const { compared } = await detail();
    const shown = compared.metrics.find(({ name }) => name === "shared/mismatch-logprob");
    expect(shown?.verdict.map(({ final }) => final)).toEqual([0.0321, 0.75]);
    const variants = page.getByRole("table", { name: "Variants" });
    for (const { final } of shown?.verdict ?? [])
      await variants.getByText(formatNumber(final), { exact: true }).waitFor();
    const native = page.getByRole("table", { name: "Native values" });
    await native.getByRole("row", { name: "gpu-worker grad_norm 2.50 n/a" }).waitFor();
    // A chart's own table has the points as the API gives them.
    const chart = page.locator('figure[aria-label^="Mismatch, mean |Δlogprob|"]');
    await chart.hover();
    await chart.getByRole("button", { name: "Show as a table" }).click();
    for (const value of [...mismatch.slow, ...mismatch.fast])
      await chart.getByText(formatNumber(value), { exact: false }).first().waitFor();
  });

  test("a variant's lines are hidden by its button and its key, and the address says so", async () => {
    await open();
    const [slow] = launched.runs.map(({ runId }) => runId);
    await page.getByRole("button", { name: "Lines of slow" }).click();
    await page.waitForURL(`**/comparisons/*?hidden=${slow}`);
    await page.keyboard.press("1");
    await expect.poll(() => page.url()).not.toContain("hidden");
    await page.keyboard.press("y");
    await page.waitForURL("**/comparisons/*?log=true");
    await open("?log=true&smooth=60");
    expect(await page.getByRole("button", { name: "Log", exact: true }).getAttribute("aria-pressed")).toBe("true");
  });

  test("it is found from the Compare page, and scrolls in its own box", async () => {
    await page.goto(`${stack.url}/compare`);
    await page.getByRole("region", { name: "Launched comparisons" }).getByRole("link", { name: "two rates" }).click();
    await page.waitForURL("**/comparisons/*");
    expect(await page.getByRole("link", { name: "Compare", exact: true }).first().getAttribute("aria-current")).toBe(
      "page",
    );
    for (const width of [1440, 900]) {
      await page.setViewportSize({ width, height: 900 });
      await open();
      await page.getByRole("table", { name: "Variants" }).waitFor();
      expect([width, await frameMoves(page)]).toEqual([width, ""]);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("one that is not there, and one that can't be read, are told; what was read stays", async () => {
    await page.goto(`${stack.url}/comparisons/nosuchcomparison`);
    await page.getByRole("alert").getByText("Could not find this comparison").waitFor();
    await open();
    await page.route("**/api/trpc/**", (route) => route.abort());
    await page
      .getByRole("alert")
      .getByText(/shown: as of/)
      .waitFor();
    expect(await page.getByRole("table", { name: "Variants" }).isVisible()).toBe(true);
    await page.unroute("**/api/trpc/**");
    expect(pageErrors).toEqual([]);
  });
});
