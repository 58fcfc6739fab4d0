/**
 * A comparison written in the browser: what a backend refuses is said beside its field before anything is launched, the address holds
 * the whole draft, and all of it works from the keyboard. Everything is real but the policy: nothing runs the launched runs here.
 */
import { ComparisonPage, LaunchedComparison } from "@rolldeck/contracts/api/comparisons";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jsonPost, smallConfig } from "../../apps/api/testing/start-api.ts";
import { chromiumMissing, chromiumName, openSignedIn } from "./testing/browser.ts";
import { frameMoves } from "./testing/frame-moves.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";

describe.skipIf(chromiumMissing)(`a new comparison, ${chromiumName}`, () => {
  let stack: PageStack;
  let browser: Browser;
  let page: Page;
  let pageErrors: readonly string[];
  const state = () => page.getByTestId("check-state");
  const variant = (at: number) => page.getByTestId("variant").nth(at);
  const field = (at: number, path: string) => variant(at).locator(`[data-field="${path}"]`);
  const comparisons = async () =>
    ComparisonPage.parse(await (await stack.api.fetch("/api/v1/comparisons")).json()).items;

  beforeAll(async () => {
    stack = await startPageStack();
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("it begins with two variants; what is refused is beside its field, and a launch leads there", async () => {
    await page.goto(`${stack.url}/compare`);
    await page.getByRole("link", { name: "New comparison" }).first().click();
    await page.waitForURL("**/comparisons/new");
    expect(await page.getByTestId("variant").count()).toBe(2);
    await expect.poll(() => state().textContent()).toBe("1 error");
    const warmStart = field(1, "model.warmStart");
    await warmStart.getByTestId("field-error").getByText("an adapter can't be loaded from it").waitFor();
    await page.keyboard.press("Control+Enter");
    await expect
      .poll(() => page.getByTestId("issue-summary").evaluate((box) => box === document.activeElement))
      .toBe(true);
    expect(await comparisons()).toEqual([]);
    await page.getByTestId("issue-summary").getByRole("button", { name: "LoRA 32" }).press("Enter");
    await expect
      .poll(() =>
        warmStart
          .locator("input")
          .first()
          .evaluate((box) => box === document.activeElement),
      )
      .toBe(true);
    await page.keyboard.press("Space");
    await expect.poll(() => state().textContent()).toBe("no errors");
    expect(await warmStart.locator("input").first().isChecked()).toBe(false);
  });

  test("a third variant for SkyRL's server has its own fields; the address gives the draft back whole", async () => {
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("a");
    await expect.poll(() => page.getByTestId("variant").count()).toBe(3);
    await page.keyboard.type("SkyRL");
    await field(2, "backend.name").getByRole("combobox").selectOption("tinker");
    const dialect = field(2, "backend.dialect");
    await dialect.getByTestId("field-error").getByText("choose skyrl (its JAX backend) or hosted").waitFor();
    await dialect.getByRole("combobox").selectOption("skyrl");
    await field(2, "backend.endpoint").getByRole("textbox").fill("http://127.0.0.1:9");
    await field(2, "backend.lora").getByRole("checkbox").check();
    await field(2, "backend.lora").getByLabel("Rank").fill("8");
    const clip = field(2, "algorithm.gradClipNorm");
    await clip.getByTestId("field-error").waitFor();
    await clip.getByRole("textbox").fill("0");
    await expect.poll(() => clip.getByTestId("field-error").count()).toBe(0);
    await field(2, "algorithm.dualClip").getByTestId("field-error").getByText("leave it off (null)").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("variants")).toContain('"gradClipNorm":0');
    await page.reload();
    await expect.poll(() => page.getByTestId("variant").count()).toBe(3);
    expect(await variant(2).getByLabel("Label of variant 3").inputValue()).toBe("SkyRL");
    expect(await field(2, "backend.lora").getByLabel("Rank").inputValue()).toBe("8");
    await variant(2).getByRole("button", { name: "Remove variant 3" }).click();
    await expect.poll(() => state().textContent()).toBe("no errors");
  });

  test("two labels alike and no name are said before any server is asked", async () => {
    await variant(1).getByLabel("Label of variant 2").fill("all weights");
    await page.getByLabel("Name", { exact: true }).fill("");
    const faults = page.getByTestId("issue-summary");
    await faults.getByText("Two variants are called all weights.").waitFor();
    await faults.getByText("Give the comparison a name.").waitFor();
    await expect.poll(() => state().textContent()).toBe("2 errors");
    await page.getByLabel("Name", { exact: true }).fill("weights or adapter");
    await variant(1).getByLabel("Label of variant 2").fill("adapter");
    await expect.poll(() => state().textContent()).toBe("no errors");
  });

  test("it is launched once, and its page says what the variants differ in by what that means", async () => {
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/comparisons\/(?!new)/);
    await page.getByRole("heading", { level: 1, name: "weights or adapter" }).waitFor();
    const [made, ...more] = await comparisons();
    expect([made?.labels, more]).toEqual([["all weights", "adapter"], []]);
    const differences = page.getByRole("region", { name: "Config differences" });
    await differences.getByRole("row", { name: /backend\.lora\.rank all weights 32/ }).waitFor();
  });

  test("a run can be the common config; one that is not there is told, and the frame stays", async () => {
    const body = { name: "rates", config: smallConfig, variants: [{ label: "slow" }, { label: "fast" }] };
    const launched = LaunchedComparison.parse(
      await (await stack.api.fetch("/api/v1/comparisons", jsonPost(body))).json(),
    );
    await page.goto(`${stack.url}/comparisons/new?from=${launched.runs[0]?.runId}`);
    await expect
      .poll(() => page.getByLabel("Common config").evaluate((list: HTMLSelectElement) => list.selectedOptions[0]?.text))
      .toMatch(/^rates: slow/);
    await expect.poll(() => state().textContent()).toMatch(/no errors|error/);
    for (const width of [1440, 900]) {
      await page.setViewportSize({ width, height: 900 });
      expect([width, await frameMoves(page)]).toEqual([width, ""]);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${stack.url}/comparisons/new?from=nosuchrun`);
    await page.getByRole("alert").getByText("Could not read the run to begin from").waitFor();
    expect(await page.getByRole("button", { name: /^Launch/ }).isDisabled()).toBe(true);
    expect(pageErrors).toEqual([]);
  });
});
