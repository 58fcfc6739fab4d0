/**
 * The inspector on a rollout in which everything happens: each thing is shown for what it is. The rollout's rows are seeded; the
 * stack that shows them is the real one.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AgentStory, fullOutput, seedAgentStory, storyHint } from "./testing/agent-story.ts";
import { chromiumMissing, chromiumName, openSignedIn } from "./testing/browser.ts";
import { memoryPolicy } from "./testing/demo-policy.ts";
import { startWalkStack, type WalkStack } from "./testing/walk-stack.ts";

describe.skipIf(chromiumMissing)(`the inspector, ${chromiumName}`, () => {
  let stack: WalkStack;
  let browser: Browser;
  let page: Page;
  let story: AgentStory;
  let pageErrors: readonly string[];
  const turn = (number: number) => page.getByRole("article", { name: `Turn ${number}`, exact: true });
  const open = async (query = "") => {
    await page.goto(`${stack.url}/runs/${story.runId}/t/${story.rolloutId}${query}`);
    await page.getByRole("navigation", { name: "Turns" }).getByRole("button").first().waitFor();
  };
  /** Brings a turn into view: the list holds only what is near. */
  const goTo = async (number: number) => {
    await page.locator(`[data-outline="${number}"] button`).click();
    await turn(number).waitFor();
  };

  beforeAll(async () => {
    stack = await startWalkStack({ policy: memoryPolicy });
    story = await seedAgentStory(stack.api.database.pool);
    ({ browser, page, pageErrors } = await openSignedIn(await stack.signInLink()));
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  });

  test("a call format that the run does not read is said once, above everything", async () => {
    await open();
    const banner = page.getByRole("alert").filter({ hasText: "Other call format" });
    expect(await banner.count()).toBe(1);
    await banner.getByRole("button", { name: "Turn 7" }).click();
    await turn(7).getByText("the server counted 33 sampled tokens, its ids are 34").waitFor();
  });

  test("thinking stands apart, and the sampled text is one click away", async () => {
    await open("?turn=0");
    await turn(0).getByText("A listing first; it may be long.", { exact: true }).waitFor();
    await turn(0).getByText("I list the files.", { exact: true }).waitFor();
    await turn(0).getByRole("button", { name: "As sampled" }).click();
    await turn(0).getByText("<think>A listing first", { exact: false }).waitFor();
  });

  test("an output that was cut says how much there was, and the whole of it is one click away", async () => {
    await open("?turn=0");
    await turn(0).getByText("the model saw a cut version of 9.78 KiB").waitFor();
    const link = turn(0).getByRole("link", { name: "full output (9.78 KiB)" });
    const address = new URL((await link.getAttribute("href")) ?? "", stack.url);
    const answer = await page.request.get(address.href);
    expect(answer.status()).toBe(200);
    expect(await answer.text()).toBe(fullOutput);
  });

  test("hints, retries and cut turns are marked as what they are", async () => {
    await open();
    await goTo(1);
    await turn(1).getByText(storyHint).waitFor();
    await turn(1).getByText("our words, never trained").waitFor();
    await turn(1).getByText("no usable call").waitFor();
    await turn(1).getByText("There was no tool call in your turn. Write one", { exact: false }).waitFor();
    await goTo(2);
    await turn(2).getByText("cut by length").waitFor();
    expect(await turn(2).getByText("no usable call").count()).toBe(0);
  });

  test("a sub-agent's turns stand below the call that made it, and each leads to the other", async () => {
    await open();
    const order = await page.locator("[data-outline]").evaluateAll((rows) => rows.map((row) => row.dataset.outline));
    expect(order).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    await goTo(3);
    await turn(3).getByText("delegate: a comma before } was dropped").waitFor();
    await turn(3).getByRole("button", { name: "sub-agent: 2 turns, from turn 4" }).click();
    await page.waitForURL(/turn=4/);
    expect(await turn(4).getAttribute("data-thread")).toBe("3.0");
    await turn(4).getByRole("button", { name: "sub-agent of turn 3" }).click();
    await page.waitForURL(/turn=3/);
  });

  test("a restarted context says what it dropped; the next turn begins anew", async () => {
    await open();
    await goTo(6);
    const change = turn(6).getByTestId("context-change");
    expect(await change.textContent()).toMatch(/Context restarted.*tokens dropped, .* kept, 26 new/);
    await goTo(7);
    expect(await turn(7).getByText("26 tokens, not sampled").count()).toBe(1);
    const facts = await page.getByRole("region", { name: "Rollout", exact: true }).textContent();
    expect(facts).toMatch(/Training rows3Context changes1Sub-agents1Turns retried3/);
  });

  test("tokens say why they are not trained", async () => {
    await open(`?tok=${story.cutToken}`);
    const facts = page.getByRole("region", { name: "Token", exact: true });
    await facts.getByText("the turn was cut by its token limit").waitFor();
    expect(await page.locator(`[data-token="${story.cutToken}"]`).getAttribute("class")).toContain("hatched");
  });

  test("words are found in turns that are not on the page, and Enter goes there", async () => {
    await open();
    await page.keyboard.press("Control+f");
    const find = page.getByRole("search", { name: "Find in this rollout" });
    await find.getByRole("textbox").fill("NO RESULT within");
    await find.getByRole("status").filter({ hasText: "2" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/turn=4/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/turn=5/);
    await page.keyboard.press("Escape");
    expect(await find.count()).toBe(0);
  });

  test("siblings stand side by side, and the place where they part is marked", async () => {
    await open();
    await page.keyboard.press("d");
    const columns = page.getByRole("region", { name: "Siblings side by side" });
    await columns.getByText("I give up.").waitFor();
    expect(await columns.getByTestId("divergence").count()).toBe(1);
    await columns.getByRole("link", { name: "Sample 2" }).click();
    await page.getByText("sample 2 of 2").waitFor();
  });

  test("under another run's address the rollout leads to its own, with what the link points at", async () => {
    const { runId } = await stack.rolldeck.launchRun({
      name: "another",
      taskSets: [{ name: "key-chain" }],
      agent: { maxContextTokens: 2048 },
      budget: { steps: 1 },
    });
    await page.goto(`${stack.url}/runs/${runId}/t/${story.rolloutId}?turn=6`);
    await page.waitForURL(`**/runs/${story.runId}/t/${story.rolloutId}?turn=6`);
    await turn(6).waitFor();
  });

  test("a memory run launched from the form shows its resets, hints and retries as they come from the loop", async () => {
    await page.goto(`${stack.url}/runs/new?preset=memory`);
    const field = (name: string) => page.locator(`[data-field="${name}"]`);
    await field("budget.steps").locator("input").fill("1");
    await field("evaluation.samples").locator("input").fill("0");
    // Room for what a retry is told, and a hint.
    await field("agent.maxContextTokens").locator("input").fill("512");
    await field("model.warmStart").locator("input").first().uncheck();
    await field("agent.hints").getByLabel("steps-left").check();
    await page.getByText("no errors", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Launch run" }).click();
    await page.waitForURL(/\/runs\/[0-9a-z]{20,}$/);
    await page.getByText("Completed", { exact: true }).waitFor();
    const runId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const { groups } = await stack.rolldeck.readMatrix({ runId });
    const cells = groups.flatMap((group) => group.cells);
    const pages = await Promise.all(cells.map(({ rolloutId }) => stack.rolldeck.readTurns({ rolloutId })));
    const retried = pages.find(({ turns }) => turns.some((each) => each.parseError !== null));
    expect(retried?.turns.filter((each) => each.contextChange?.kind === "restart").length).toBeGreaterThanOrEqual(3);
    await page.goto(`${stack.url}/runs/${runId}/t/${retried?.rolloutId}`);
    await turn(0).getByText("no usable call").waitFor();
    await turn(0).getByText("hm, let me see").first().waitFor();
    await goTo(1);
    await turn(1).getByText("our words, never trained").first().waitFor();
    await turn(1).getByTestId("context-change").getByText("Context restarted").waitFor();
    // What the next part added is the whole of its opening beyond what was kept, once.
    await goTo(2);
    expect(await turn(2).getByText("tokens, not sampled").count()).toBeGreaterThanOrEqual(1);
    const marked = await page.locator("[data-outline]").evaluateAll((rows) => rows.map((row) => row.textContent ?? ""));
    expect(marked.filter((text) => text.includes("⟲")).length).toBeGreaterThanOrEqual(3);
  });

  test("an address that leads nowhere says so inside the frame", async () => {
    const answer = await page.goto(`${stack.url}/rnus`);
    expect(answer?.status()).toBe(404);
    await page.getByRole("heading", { name: "There is no page at this address" }).waitFor();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    expect(pageErrors).toEqual([]);
  });
});
