/**
 * An evaluation over the offline set as a person runs it: launched from the form on an OpenAI-compatible endpoint of the operator's
 * list, in real containers, watched to its end, looked into. Four scripted policies work on each instance; what they earn, how they
 * end and what is said of them must be right for each. Then one on whatever endpoint is set, of which only that is known.
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { TestReport } from "@rolldeck/contracts/test-report";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumMissing, chromiumName, openSignedIn } from "../walks/testing/browser.ts";
import { root } from "../walks/testing/walk-stack.ts";
import { anyEndpointName } from "./testing/any-endpoint.ts";
import { type PolicyName, policyNames } from "./testing/policies.ts";
import { endpointKey, type SweStack, startSweStack } from "./testing/swe-stack.ts";

const ids = [
  "jinja2-sandbox-indirect-format",
  "jinja2-xmlattr-spaces",
  "h11-chunk-end",
  "mako-nested-loop-targets",
  "pathspec-match-file-bool",
];
const minutes = 60_000;
const pictures = path.join(root, "test-results/swe");

const trainConfig: RunConfigInput = {
  kind: "train",
  name: "four policies on one bug",
  taskSets: [{ name: "swe", dataset: "swe-train", size: 1 }],
  agent: { dialect: "hermes", maxTurns: 20, maxContextTokens: 100_000, sampling: { maxTokensPerTurn: 16_384 } },
  algorithm: { groupsPerStep: 1, groupSize: policyNames.length, advantage: "rloo", microBatchTokens: 1_000_000 },
  budget: { steps: 1 },
};

interface Seen {
  readonly policy: PolicyName;
  readonly rollout: RolloutDetail;
}

describe.skipIf(chromiumMissing)(`an evaluation over the offline SWE set, ${chromiumName}`, () => {
  let stack: SweStack;
  let browser: Browser;
  let page: Page;
  let runId = "";
  let seen: Seen[] = [];
  let pageErrors: readonly string[];
  const picture = (name: string) => page.screenshot({ path: path.join(pictures, `${name}.png`) });
  const of = (policy: PolicyName): Seen[] => seen.filter((each) => each.policy === policy);
  const theOne = (policy: PolicyName): RolloutDetail => {
    const found = of(policy)[0];
    if (found === undefined) throw new Error(`no rollout of ${policy}`);
    return found.rollout;
  };
  const open = async (rollout: RolloutDetail, query = ""): Promise<void> => {
    await page.goto(`${stack.walk.url}/runs/${runId}/t/${rollout.rolloutId}${query}`);
  };

  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    stack = await startSweStack(ids);
    ({ browser, page, pageErrors } = await openSignedIn(await stack.walk.signInLink(), 90_000));
  }, 8 * minutes);
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
  }, minutes);

  test("is launched from the form, with the endpoint chosen by its name", async () => {
    await page.goto(`${stack.walk.url}/runs/new?preset=swe-offline`);
    const field = (name: string) => page.locator(`[data-field="${name}"]`);
    await field("model.name").locator("select").selectOption("quickstart");
    await field("backend.server").locator("select").selectOption("scripted");
    // The quickstart's tokens are bytes: what a model of words reads in 32 thousand takes more of them.
    await field("agent.maxContextTokens").locator("input").fill("400000");
    await field("agent.sampling.maxTokensPerTurn").locator("input").fill("32768");
    await field("evaluation.samples").locator("input").fill(String(ids.length));
    await field("evaluation.samplesPerInstance").locator("input").fill(String(policyNames.length));
    await field("evaluation.passAt").locator("input").fill(`1, ${policyNames.length}`);
    await page.getByText("no errors", { exact: true }).waitFor();
    await picture("1-form");
    await page.getByRole("button", { name: "Launch run" }).click();
    await page.waitForURL(/\/runs\/[0-9a-z]{20,}$/);
    runId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  });

  test(
    "is watched to its end",
    async () => {
      await page.getByText("Completed", { exact: true }).waitFor({ timeout: 7 * minutes });
      await picture("2-run");
      const matrix = await stack.walk.rolldeck.readMatrix({ runId, purpose: "evaluate" });
      expect(matrix.groups).toHaveLength(ids.length);
      const cells = matrix.groups.flatMap((group) => group.cells);
      seen = await Promise.all(
        cells.map(async ({ rolloutId }) => {
          const policy = stack.endpoint.policyOf(rolloutId);
          if (policy === undefined) throw new Error(`rollout ${rolloutId} never asked the endpoint`);
          return { policy, rollout: await stack.walk.rolldeck.getRollout(rolloutId) };
        }),
      );
      expect(Object.values(stack.endpoint.counts())).toEqual(policyNames.map(() => ids.length));
    },
    8 * minutes,
  );

  test("the solver earns 1 on every instance, with every listed test as its list wants it", async () => {
    for (const { rollout } of of("solver")) {
      const { reward, success, ending, outcome, attempt, flags } = rollout;
      expect({ reward, success, ending, outcome, attempt, flags }, rollout.reason ?? "").toEqual({
        ...{ reward: 1, success: true, ending: "finish_tool", outcome: "completed", attempt: 1, flags: [] },
      });
      const report = await testReport(rollout);
      expect(report.patch).toMatchObject({ applied: true });
      expect(report.tests.filter(({ ok }) => ok === false)).toEqual([]);
      expect(report.tests.some(({ wanted, status }) => wanted === "fail-to-pass" && status === "passed")).toBe(true);
    }
  });

  test("a patch that mends nothing earns 0, because the tests that should turn still fail", async () => {
    for (const { rollout } of of("wrongPatch")) {
      expect([rollout.reward, rollout.success, rollout.ending]).toEqual([0, false, "finish_tool"]);
      const report = await testReport(rollout);
      expect(report.patch).toMatchObject({ applied: true });
      const wrong = report.tests.filter(({ ok }) => ok === false);
      expect(wrong.length).toBeGreaterThan(0);
      expect(wrong.every(({ wanted }) => wanted === "fail-to-pass")).toBe(true);
    }
  });

  test("a policy that asks the same for ever is stopped as a loop, graded 0", async () => {
    for (const { rollout } of of("looper")) {
      expect([rollout.ending, rollout.reward, rollout.success]).toEqual(["loop", 0, false]);
      expect(rollout.attempt).toBe(1);
    }
  });

  test("deleting tests and planting a conftest earns 0 and is told", async () => {
    for (const { rollout } of of("testDeleter")) {
      expect([rollout.reward, rollout.success, rollout.ending]).toEqual([0, false, "finish_tool"]);
      expect(rollout.flags.join(" ")).toMatch(/changed test files/);
      expect(rollout.flags.join(" ")).toMatch(/conftest\.py/);
    }
  });

  test("the scores say it: a quarter solved at one try, all at four", async () => {
    const report = await stack.walk.rolldeck.readEvaluation({ runId });
    const all = report.evaluations[0]?.all;
    expect([all?.instances, all?.rollouts, all?.scored, all?.unscored]).toEqual([5, 20, 20, 0]);
    expect(all?.success?.value).toBeCloseTo(0.25);
    expect(all?.passAt.map(({ k, estimate }) => [k, estimate?.value])).toEqual([
      [1, 0.25],
      [4, 1],
    ]);
    await page.keyboard.press("2");
    await page.locator("[data-rollout]").first().waitFor();
    expect(await page.locator("[data-rollout]").count()).toBe(20);
    await picture("3-rollouts");
  });

  test("the inspector shows the solver's turns, patch and tests", async () => {
    const rollout = theOne("solver");
    await open(rollout);
    await page.getByRole("navigation", { name: "Turns" }).getByRole("button").first().waitFor();
    await picture("4-turns");
    await open(rollout, "?pane=patch");
    await page
      .getByText(/\+\+\+|patch\.diff/)
      .first()
      .waitFor();
    await picture("5-patch");
    await open(rollout, "?pane=tests");
    await page.getByRole("radiogroup", { name: "Tests" }).or(page.getByLabel("Tests")).first().waitFor();
    await picture("6-tests");
    await open(theOne("testDeleter"), "?pane=tests");
    await page
      .getByText(/conftest\.py/)
      .first()
      .waitFor();
    await page.getByText("fail to pass", { exact: true }).first().waitFor();
    await picture("7-test-deleter");
    expect(pageErrors).toEqual([]);
  });

  test(
    "in training the loop is masked, what was handed in is trained, and advantages are those of the rewards",
    async () => {
      const { rolldeck } = stack.walk;
      const { runId: trained } = await rolldeck.launchRun(trainConfig);
      await page.goto(`${stack.walk.url}/runs/${trained}`);
      await page.getByText("Completed", { exact: true }).waitFor({ timeout: 3 * minutes });
      const matrix = await rolldeck.readMatrix({ runId: trained });
      const cells = matrix.groups.flatMap((group) => group.cells);
      const rollouts = await Promise.all(cells.map(({ rolloutId }) => rolldeck.getRollout(rolloutId)));
      const told = rollouts.map(({ ending, reward, fate }) => [
        ending,
        reward,
        fate.state,
        fate.reason,
        fate.advantage,
      ]);
      expect(told.sort((a, b) => String(b).localeCompare(String(a)))).toEqual([
        ["loop", 0, "masked", "ending-cut", expect.closeTo(-1 / 3)],
        ["finish_tool", 1, "trained", null, expect.closeTo(1)],
        ["finish_tool", 0, "trained", null, expect.closeTo(-1 / 3)],
        ["finish_tool", 0, "trained", null, expect.closeTo(-1 / 3)],
      ]);
      for (const { rolloutId, ending } of rollouts) {
        const tokens = await rolldeck.readTokens({ rolloutId });
        const sampled = tokens.maskReasons.filter((_, place) => tokens.origins[place] === "sampled");
        expect([ending, [...new Set(sampled)]]).toEqual([ending, [ending === "loop" ? "ending-cut" : null]]);
        const others = tokens.maskReasons.filter((_, place) => tokens.origins[place] !== "sampled");
        expect(others).not.toContain(null);
      }
      const looper = rollouts.find(({ ending }) => ending === "loop");
      await page.goto(`${stack.walk.url}/runs/${trained}/t/${looper?.rolloutId}`);
      await page.getByText("stuck in a loop").first().waitFor();
      await picture("8-loop-masked");
    },
    4 * minutes,
  );

  test(
    "any OpenAI-compatible endpoint that is set can be evaluated in the same way, and is graded, whatever it answers",
    async () => {
      await page.goto(`${stack.walk.url}/runs/new?preset=swe-offline`);
      const field = (name: string) => page.locator(`[data-field="${name}"]`);
      await field("model.name").locator("select").selectOption("quickstart");
      await field("backend.server").locator("select").selectOption(anyEndpointName);
      await field("agent.maxTurns").locator("input").fill("12");
      await field("evaluation.samples").locator("input").fill("1");
      await page.getByText("no errors", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Launch run" }).click();
      await page.waitForURL(/\/runs\/[0-9a-z]{20,}$/);
      const own = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      await page.getByText("Completed", { exact: true }).waitFor({ timeout: 5 * minutes });
      const { rolldeck } = stack.walk;
      const { groups } = await rolldeck.readMatrix({ runId: own, purpose: "evaluate" });
      const cells = groups.flatMap((group) => group.cells);
      expect(cells).toHaveLength(1);
      const rollout = await rolldeck.getRollout(cells[0]?.rolloutId ?? "");
      expect([rollout.outcome, rollout.attempt], rollout.reason ?? "").toEqual(["completed", 1]);
      expect([0, 1]).toContain(rollout.reward);
      expect(rollout.success).toBe(rollout.reward === 1);
      if (!stack.anyEndpoint.isUsers)
        expect([rollout.ending, rollout.reward, rollout.reason]).toEqual(["finish_tool", 0, "no change"]);
      await picture("9-any-endpoint");
    },
    6 * minutes,
  );

  test("no sandbox is left, and the endpoints' keys are nowhere", async () => {
    const { pool } = stack.walk.api.database;
    const open = await pool.query("select count(*)::int as n from sandboxes where closed_at is null");
    expect(open.rows[0].n).toBe(0);
    const keys = [endpointKey, ...(stack.anyEndpoint.key === null ? [] : [stack.anyEndpoint.key])];
    for (const table of ["runs", "events", "rollouts", "transitions", "artifacts"]) {
      for (const key of keys) {
        const found = await pool.query(`select count(*)::int as n from ${table} t where strpos(t::text, $1) > 0`, [
          key,
        ]);
        expect([table, found.rows[0].n]).toEqual([table, 0]);
      }
    }
  });

  /** What the verifier kept of the tests. */
  async function testReport({ rolloutId }: RolloutDetail): Promise<TestReport> {
    const { artifacts } = await stack.walk.rolldeck.listArtifacts({ rolloutId });
    const info = artifacts.find(({ name }) => name === "tests.json");
    if (info === undefined) throw new Error(`no tests.json: ${artifacts.map(({ name }) => name).join(", ")}`);
    const address = `/api/v1/rollouts/${rolloutId}/artifacts/${info.turn}/${info.index}/${info.name}`;
    const response = await stack.walk.api.fetch(address);
    return TestReport.parse(await response.json());
  }
});
