/** The Checkpoints tab: what is kept and why, pins, a run that goes back to a checkpoint, and both runs naming each other. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { smokeConfig } from "../../apps/worker/testing/rig.ts";
import { chromiumMissing, chromiumName, openSignedIn, patienceMs } from "./testing/browser.ts";
import { startWalkStack, type WalkStack } from "./testing/walk-stack.ts";

describe.skipIf(chromiumMissing)(`checkpoints, ${chromiumName}`, () => {
  let stack: WalkStack;
  let browser: Browser;
  let page: Page;
  let pageErrors: readonly string[];
  let runId: string;
  const row = (version: number) =>
    page.getByRole("row").filter({ has: page.getByRole("cell", { name: String(version), exact: true }) });
  const status = async (run: string) => (await stack.rolldeck.getRun(run)).status;

  beforeAll(async () => {
    stack = await startWalkStack();
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("each says why it is kept, and the rule is told in words", async () => {
    const config = smokeConfig({
      name: "keeps its best",
      algorithm: { groupsPerStep: 2, groupSize: 4 },
      checkpoints: { every: 1, keep: 3, keepBest: { count: 1, metric: "reward/mean" } },
      budget: { steps: 4 },
    });
    ({ runId } = await stack.rolldeck.launchRun(config));
    await expect.poll(() => status(runId), { timeout: patienceMs }).toBe("completed");
    // Its model is put away before the run can go back.
    await expect
      .poll(
        async () => (await stack.api.database.pool.query("select model_boot_id from runs where id = $1", [runId])).rows,
        {
          timeout: patienceMs,
        },
      )
      .toEqual([{ model_boot_id: null }]);
    await page.goto(`${stack.url}/runs/${runId}?tab=checkpoints`);
    await page.getByText("One every step; the 3 newest and the best by reward are kept.").waitFor();
    await row(4).getByText("newest", { exact: true }).waitFor();
    expect(await row(4).getByText("last", { exact: true }).count()).toBe(1);
    // This server knows no GPU worker of its own: what can't be done says why.
    await expect(row(4).getByRole("button", { name: "Export" }).getAttribute("title")).resolves.toContain(
      "no GPU worker",
    );
  });

  test("the keyboard chooses one, keeps the choice in the address, and pins it", async () => {
    await page.keyboard.press("j");
    await page.waitForURL(/version=4/);
    await page.keyboard.press("j");
    await page.waitForURL(/version=3/);
    await page.keyboard.press("p");
    await row(3).getByText("pinned", { exact: true }).waitFor();
    await page.reload();
    await row(3).getByRole("button", { name: "Unpin" }).click();
    await row(3).getByRole("button", { name: "Pin" }).waitFor();
    await page.keyboard.press("f");
    await page.waitForURL(/\/runs\/new\?.*version=3/);
    await page.goBack();
  });

  test("the run goes back to a version and on from it; each of the two runs leads to the other", async () => {
    await page.goto(`${stack.url}/runs/${runId}?tab=checkpoints`);
    await row(2).getByRole("button", { name: "Restore" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/goes on with step 3 from these weights.*becomes a run of its own/).waitFor();
    await dialog.getByRole("button", { name: "Restore run" }).click();
    await dialog.waitFor({ state: "detached" });
    const lineage = page.getByRole("region", { name: "Lineage" });
    await lineage.getByText(/Set back to version 2/).waitFor();
    await expect.poll(() => status(runId), { timeout: patienceMs }).toBe("completed");
    await row(4).waitFor();
    await lineage.getByRole("link", { name: "keeps its best (superseded)" }).click();
    await lineage.getByText(/Came after version 2 of/).waitFor();
    await expect(row(4).getByRole("button", { name: "Restore" }).isDisabled()).resolves.toBe(true);
    await lineage.getByRole("link", { name: "keeps its best", exact: true }).click();
    await page.waitForURL(new RegExp(`/runs/${runId}`));
    const { events } = await stack.rolldeck.readEvents({ runId, limit: 1000 });
    expect(events.map(({ body }) => body)).toContainEqual(
      expect.objectContaining({ type: "run-restored", version: 2, lastStep: 4, by: "the owner" }),
    );
  });

  test("no script of a page threw", () => {
    expect(pageErrors).toEqual([]);
  });
});
