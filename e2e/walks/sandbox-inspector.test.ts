/**
 * What a rollout in sandboxes leaves for people: its patch, tests, outputs, times and sandboxes, and a shell in one. Rows are seeded;
 * API, socket and pages are the real ones, and so are the processes behind the shell.
 */
import { readFile } from "node:fs/promises";
import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalShells, localShells } from "../../apps/api/testing/local-shells.ts";
import { rolldeck } from "../real/command-line.ts";
import { chromiumMissing, chromiumName, openSignedIn, patienceMs } from "./testing/browser.ts";
import { frameMoves } from "./testing/frame-moves.ts";
import { type PageStack, startPageStack } from "./testing/page-stack.ts";
import { type SandboxStory, seedSandboxStory, storyPatch } from "./testing/sandbox-story.ts";

describe.skipIf(chromiumMissing)(`sandboxes in the inspector, ${chromiumName}`, () => {
  let stack: PageStack;
  let local: LocalShells;
  let browser: Browser;
  let page: Page;
  let story: SandboxStory;
  let pageErrors: readonly string[];
  const open = async (rolloutId: string, query = "") => {
    await page.goto(`${stack.url}/runs/${story.runId}/t/${rolloutId}${query}`);
    await page.getByRole("tablist", { name: "Rollout" }).waitFor();
  };
  const shellEvents = async () => {
    const { rows } = await stack.api.database.pool.query<{ action: string }>(
      "select body ->> 'action' as action from events where type = 'sandbox-shell' order by seq",
    );
    return rows.map(({ action }) => action);
  };
  const until = async (check: () => Promise<void>) =>
    expect.poll(() => check().then(() => "yes", String), { timeout: patienceMs }).toBe("yes");

  beforeAll(async () => {
    local = localShells();
    stack = await startPageStack({ runtime: async () => local.runtime });
    story = await seedSandboxStory(stack.api.database.pool);
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("the patch is shown by file and line, what hides in it by name, and its bytes are one click away", async () => {
    await open(story.wrong);
    await page
      .getByTitle("The verifier wants people to look at this", { exact: false })
      .getByText("deleted test files")
      .waitFor();
    await page.keyboard.press("2");
    await page.waitForURL(/pane=patch/);
    const files = page.getByRole("navigation", { name: "Changed files" });
    await files.getByRole("button").nth(4).waitFor();
    expect(await files.getByRole("button").count()).toBe(5);
    const lines = page.getByRole("region", { name: "Changed lines" });
    await lines.getByText("encoder.run(strict=True)<U+202E>").waitFor();
    await lines.getByText("onerror", { exact: false }).waitFor();
    await files.getByRole("button", { name: /test_encoder/ }).click();
    await page.waitForURL(/file=tests/);
    await page.keyboard.press("]");
    await page.waitForURL(/file=docs/);
    await lines.getByText("renamed, from docs/old name.md").waitFor();
    await lines.getByText("Binary file: its bytes are in the raw patch.").waitFor();
    await page.getByRole("img", { name: "4 lines added, 5 removed" }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: /patch\.diff/ }).click(),
    ]);
    expect(await readFile((await download.path()) ?? "", "utf8")).toBe(storyPatch);
  });

  test("the tests stand with what fails first; what the command printed is one click away", async () => {
    await open(story.wrong, "?pane=tests");
    const verdict = page.getByRole("region", { name: "Verdict" });
    await verdict.getByText("not resolved").waitFor();
    await verdict.getByText("applied by git apply --3way").waitFor();
    const tests = page.getByRole("region", { name: "Test results" });
    const names = () =>
      tests.locator("[data-test]").evaluateAll((rows) => rows.slice(0, 4).map((row) => row.dataset.test));
    expect(await names()).toEqual([
      "tests/test_encoder.py::test_quote",
      "tests/test_parser.py::test_depth",
      "tests/test_encoder.py::test_close",
      "tests/test_parser.py::TestParser::test_case_0",
    ]);
    await tests.getByRole("button", { name: /test_quote/ }).click();
    await tests.getByText("<img src=x onerror", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Fail to pass 1/2" }).click();
    await page.waitForURL(/tests=fail-to-pass/);
    expect(await names()).toEqual(["tests/test_encoder.py::test_quote", "tests/test_encoder.py::test_close"]);
    await page.keyboard.press("/");
    await page.keyboard.type("close");
    await page.getByRole("status").filter({ hasText: "1 of 125" }).waitFor();
    await verdict.getByRole("button", { name: "what it printed" }).click();
    await page.waitForURL(/output=tests/);
  });

  test("outputs are there in full, coloured or plain, and are searched to the end", async () => {
    await open(story.wrong, "?pane=output");
    const output = page.getByRole("region", { name: "Output" });
    await output.getByText("test session starts", { exact: false }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("a link and");
    await page.keyboard.press("Enter");
    await output.getByText("<img src=x onerror", { exact: false }).waitFor();
    expect(await output.getByRole("link").count()).toBe(0);
    expect(await output.getByText("progress 100 %").count()).toBe(1);
    await page.getByLabel("Output of").selectOption("0.0");
    await output.getByText("src/file_0.py").waitFor();
    await page.getByText("900 lines").waitFor();
  });

  test("times stand by stage with what the sandboxes were busy with", async () => {
    await open(story.wrong, "?pane=timing");
    const table = page.getByRole("table", { name: "Where the time went" });
    for (const label of [
      "model calls",
      "tool calls",
      "init",
      "open the sandbox",
      "commands of the agent",
      "verify (grading)",
      "run the tests",
    ])
      await table.getByRole("cell", { name: label, exact: true }).first().waitFor();
  });

  test("the log of a sandbox is filtered to trouble, and the newest one is shown", async () => {
    await open(story.wrong, "?pane=sandboxes");
    const log = page.getByRole("region", { name: "Sandbox log" });
    await log.getByText("git -C /testbed rev-parse HEAD").waitFor();
    await page.keyboard.press("x");
    await page.waitForURL(/trouble=true/);
    await page.getByRole("status").filter({ hasText: "2 of 46" }).waitFor();
    await log.getByText("its processes were ended", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Grading" }).click();
    await page.getByRole("status").filter({ hasText: "1 of 3" }).waitFor();
  });

  test("a live rollout says how long its stage goes on, and that what it will leave is not there yet", async () => {
    await open(story.live, "?pane=timing");
    await page.getByRole("row", { name: /^run .* so far/ }).waitFor();
    await open(story.live, "?pane=patch");
    await page.getByRole("heading", { name: "No patch yet" }).waitFor();
  });

  test("a shell opens in a kept sandbox, takes keys, is left by its key, and says how it ended", async () => {
    await open(story.wrong, "?pane=sandboxes");
    await page.locator(`[data-sandbox="${story.keptSandbox}"]`).getByRole("button", { name: "Open shell" }).click();
    await page.waitForURL(/shell=sbx_/);
    const shell = page.getByRole("region", { name: "Shell" });
    await shell.getByText("kept sandbox").waitFor();
    await page.keyboard.type("echo sum=$((40 + 2)) j k t");
    await page.keyboard.press("Enter");
    await shell.getByText("sum=42 j k t").first().waitFor();
    expect(new URL(page.url()).searchParams.get("pane")).toBe("sandboxes");
    await page.keyboard.press("F6");
    expect(
      await shell.getByRole("button", { name: "End shell" }).evaluate((button) => button === document.activeElement),
    ).toBe(true);
    await shell.locator("textarea").focus();
    await page.keyboard.type("exit 3");
    await page.keyboard.press("Enter");
    await shell.getByText("ended: the shell ended with 3").waitFor();
    await until(async () => expect(await shellEvents()).toEqual(["opened", "closed"]));
    await shell.getByRole("button", { name: "Open again" }).click();
    await shell.getByText("kept sandbox").waitFor();
    await shell.getByRole("button", { name: "End shell" }).click();
    await until(async () => expect(await shellEvents()).toEqual(["opened", "closed", "opened", "closed"]));
    await until(async () => expect(local.running()).toBe(0));
  });

  test("the run lists those that are there, and leads to a shell in one", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}`);
    await page.getByRole("tab", { name: /Sandboxes.*2.*live/ }).click();
    await page.getByText("1 in use · 1 kept · 1 closed").waitFor();
    const table = page.getByRole("table", { name: "Sandboxes" });
    expect(await table.locator("tbody tr").count()).toBe(2);
    await table.getByRole("link", { name: "train-7 · 2" }).waitFor();
    // Whatever its names, no column of it is out of sight.
    await stack.api.database.pool.query("update sandboxes set network = $1, image = $2 where id = $3", [
      `allow: ${"files.example.org, ".repeat(6)}`,
      `registry.example.org/${"a-long-name/".repeat(12)}image:latest`,
      story.liveSandbox,
    ]);
    await table.getByText("registry.example.org/", { exact: false }).waitFor();
    const hidden = () => table.evaluate(({ parentElement: box }) => (box ? box.scrollWidth - box.clientWidth : -1));
    await expect.poll(hidden).toBe(0);
    expect(await frameMoves(page)).toBe("");
    await page.getByRole("button", { name: "All" }).click();
    await table.locator("tbody tr").nth(2).waitFor();
    await table.locator(`[data-sandbox="${story.liveSandbox}"]`).getByRole("button", { name: "Open shell" }).click();
    await page.waitForURL(new RegExp(`/t/${story.live}.*shell=${story.liveSandbox}`));
    await page.getByRole("region", { name: "Shell" }).getByText("what you type changes", { exact: false }).waitFor();
  });

  test("the command line lists them, and asks before it opens a shell in one that is in use", async () => {
    const env = { ROLLDECK_URL: stack.url, ROLLDECK_TOKEN: stack.api.ownerToken };
    const listed = await rolldeck(["sandbox", "list", story.runId], { env });
    expect(listed.stdout).toContain(`${story.keptSandbox}  kept`);
    expect(listed.stdout).toContain("1 open, 1 kept, 1 closed");
    const input = "echo sum=$((6 * 7)); exit 5\n";
    const kept = await rolldeck(["sandbox", "shell", story.runId, story.keptSandbox], { env, input });
    expect(kept).toMatchObject({ code: 5, stdout: expect.stringContaining("sum=42") });
    const live = ["sandbox", "shell", story.runId, story.liveSandbox];
    const refused = await rolldeck(live, { env, input });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("changes what the agent sees")]);
    expect((await rolldeck([...live, "--yes"], { env, input })).code).toBe(5);
  });

  test("flagged rollouts are found among the others", async () => {
    await page.goto(`${stack.url}/runs/${story.runId}?tab=rollouts`);
    const { pool } = stack.api.database;
    // A group beside it of which nobody flagged anything.
    const [group, plain] = ["0plaingroup000000000000000", "0plainrollout0000000000000"];
    await pool.query(
      `insert into groups select (jsonb_populate_record(g, jsonb_build_object('id', $2::text, 'position', g.position + 1))).*
       from groups g join rollouts r on r.group_id = g.id where r.id = $1`,
      [story.wrong, group],
    );
    await pool.query(
      `insert into rollouts select (jsonb_populate_record(r,
         jsonb_build_object('id', $2::text, 'group_id', $3::text, 'flags', '[]'::jsonb))).* from rollouts r where r.id = $1`,
      [story.wrong, plain, group],
    );
    await page.reload();
    const cells = page.getByRole("grid", { name: "Rollouts by group and sample" }).locator("[data-rollout]");
    await cells.first().waitFor();
    const all = await cells.evaluateAll((found) => found.map((cell) => cell.getAttribute("data-rollout")));
    await page.getByRole("button", { name: "flagged" }).click();
    await page.waitForURL(/flagged=true/);
    const { rows } = await pool.query(
      `select r.id from rollouts r where r.run_id = $1 and exists (
         select from rollouts f where f.group_id = r.group_id and f.flags <> '{}')`,
      [story.runId],
    );
    const flagged = rows
      .map(({ id }) => id)
      .filter((id) => all.includes(id))
      .sort();
    const shown = () => cells.evaluateAll((found) => found.map((cell) => cell.getAttribute("data-rollout")).sort());
    await expect.poll(shown, { timeout: patienceMs }).toEqual(flagged);
    expect(all).toEqual(expect.arrayContaining([plain, ...flagged]));
    expect(flagged).not.toContain(plain);
  });

  test("before a live sandbox is typed into, it is said what that does", async () => {
    const before = (await shellEvents()).length;
    await open(story.live, "?pane=sandboxes");
    await page.getByRole("button", { name: "Open shell" }).waitFor();
    await page.keyboard.press("s");
    const shell = page.getByRole("region", { name: "Shell" });
    await shell.getByText("what you type changes what the agent sees", { exact: false }).waitFor();
    expect(await shellEvents()).toHaveLength(before);
    await shell.getByRole("button", { name: "Open the shell" }).click();
    await shell.getByText("live sandbox of a running rollout").waitFor();
    await page.keyboard.type("echo $ROLLDECK_SHELL | wc -c");
    await page.keyboard.press("Enter");
    await shell.getByText("25", { exact: true }).first().waitFor();
    await stack.api.database.pool.query("update sandboxes set state = 'lost' where id = $1", [story.liveSandbox]);
    await shell.getByText("ended: the sandbox is lost").waitFor();
  });

  test("a kept sandbox is kept for longer, and let go", async () => {
    await open(story.wrong, "?pane=sandboxes");
    const row = page.locator(`[data-sandbox="${story.keptSandbox}"]`);
    const { pool } = stack.api.database;
    const because = (reason: string) =>
      pool.query("update sandboxes set reason = $1 where id = $2", [reason, story.keptSandbox]);
    await because(heldReason);
    await row.getByText("until it is graded").waitFor();
    await because("its rollout is over");
    await row.getByText(/2\d\smin left/).waitFor();
    await row.getByRole("button", { name: "Keep 30 min" }).click();
    await row.getByText(/(29|30)\smin left/).waitFor();
    await row.getByRole("button", { name: "Close now" }).click();
    await row.getByText("closing").waitFor();
  });

  test("a rollout without any of it has its turns alone, and says why where a link leads to nothing", async () => {
    const plain = (await stack.api.database.pool.query("select id from rollouts where reward = 1")).rows[0].id;
    await page.goto(`${stack.url}/runs/${story.runId}/t/${plain}`);
    await page.getByText("No turn yet").waitFor();
    expect(await page.getByRole("tablist", { name: "Rollout" }).count()).toBe(0);
    await open(plain, "?pane=patch");
    await page.getByRole("heading", { name: "No patch" }).waitFor();
    expect(await page.title()).not.toBe("P");
    expect(pageErrors).toEqual([]);
  });
});
