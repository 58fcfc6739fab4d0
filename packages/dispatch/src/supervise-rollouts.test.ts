import { type Ending, endings } from "@rolldeck/contracts/endings";
import type { RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import { buildConfig, buildRollout, buildSnapshot, buildStep, lost, scored } from "../testing/build-snapshot.ts";
import { backOffMs } from "./back-off.ts";
import { factsOf } from "./facts.ts";
import { superviseRollouts } from "./supervise-rollouts.ts";

const now = 1_000_000;
const supervise = (rollouts: RolloutSnapshot[], over: Partial<RunSnapshot> = {}) =>
  superviseRollouts(factsOf(buildSnapshot({ steps: [buildStep()], rollouts, ...over })));
const only = (over: Partial<RolloutSnapshot>, run: Partial<RunSnapshot> = {}) => supervise([buildRollout(over)], run);
const policy = (groupPolicy: "shrink" | "drop-group" | "wait") => ({
  config: buildConfig({ algorithm: { groupPolicy } }),
});

describe("a failed stage", () => {
  test.each(Object.keys(endings) as Ending[])("%s: the table says who tries again", (ending) => {
    const [action] = only({ stage: "evaluate", ending, evaluateFailures: 1, infrastructureFailures: 0 });
    const { graded, retry } = endings[ending];
    if (graded) expect(action).toBeUndefined();
    else expect(action?.do).toBe(retry === "evaluate" ? "regrade" : "retry");
  });

  test("has its three attempts anew where an ended evaluation was reopened", () => {
    const at = (attempt: number) =>
      only({
        stage: "run",
        ending: "model_server",
        reason: "busy",
        attempt,
        firstAttempt: 4,
        infrastructureFailures: 0,
      });
    expect(at(4)).toMatchObject([
      { do: "retry", attempt: 4, notBefore: now + backOffMs(1, "rollout-1", "model_server") },
    ]);
    expect(at(5)).toMatchObject([{ do: "retry", attempt: 5 }]);
    expect(at(6)).toMatchObject([{ do: "settle", outcome: "failed", reason: "gave up after 3 tries: busy" }]);
  });

  test("is tried again from init, later each time, three attempts in all", () => {
    const at = (attempt: number) =>
      only({ stage: "run", ending: "sandbox_lost", reason: "no space left", attempt, infrastructureFailures: attempt });
    const retry = { do: "retry", rolloutId: "rollout-1", reason: "no space left" };
    expect(at(1)).toEqual([{ ...retry, attempt: 1, notBefore: now + backOffMs(1, "rollout-1", "sandbox_lost") }]);
    expect(at(2)).toEqual([{ ...retry, attempt: 2, notBefore: now + backOffMs(2, "rollout-1", "sandbox_lost") }]);
    expect(at(3)).toEqual([
      {
        do: "settle",
        rolloutId: "rollout-1",
        attempt: 3,
        outcome: "failed",
        ending: "sandbox_lost",
        reason: "gave up after 3 tries: no space left",
      },
    ]);
  });

  test("of grading is graded again without a new attempt, three times in all", () => {
    const at = (evaluateFailures: number) =>
      only({ stage: "evaluate", ending: "verifier_error", evaluateFailures, attempt: 2 })[0];
    expect(at(1)).toMatchObject({ do: "regrade", attempt: 2, reason: "verifier error" });
    expect(at(2)).toMatchObject({ do: "regrade" });
    expect(at(3)).toMatchObject({ do: "settle", outcome: "failed", ending: "verifier_error" });
  });

  test("of grading between steps, in the run stage, is a new attempt, three in all", () => {
    const at = (attempt: number) =>
      only({ stage: "run", ending: "verifier_error", attempt, infrastructureFailures: attempt })[0];
    expect(at(1)).toMatchObject({ do: "retry", attempt: 1 });
    expect(at(3)).toMatchObject({ do: "settle", outcome: "failed", ending: "verifier_error" });
  });

  test("under policy wait is tried three times as often, but not in an evaluation", () => {
    const failed = { stage: "run", ending: "worker_lost", attempt: 8 } as const;
    expect(only(failed, policy("wait"))).toMatchObject([{ do: "retry" }]);
    expect(only({ ...failed, attempt: 9 }, policy("wait"))).toMatchObject([{ do: "settle" }]);
    const steps = [buildStep({ purpose: "evaluate" })];
    expect(only({ ...failed, attempt: 3 }, { ...policy("wait"), steps })).toMatchObject([{ do: "settle" }]);
  });

  test("keeps its reason short and well-formed", () => {
    const [action] = only({ stage: "run", ending: "infrastructure", reason: `${"x".repeat(479)}🙂 and more` });
    expect(action).toMatchObject({ reason: "x".repeat(479) });
  });
});

describe("back-off", () => {
  test("doubles from one second to a minute, spread over its upper half", () => {
    for (const [failures, full] of [
      [1, 1_000],
      [2, 2_000],
      [5, 16_000],
      [7, 60_000],
      [500, 60_000],
    ] as const) {
      const waits = Array.from({ length: 50 }, (_, at) => backOffMs(failures, `rollout-${at}`));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(full / 2);
      expect(Math.max(...waits)).toBeLessThanOrEqual(full);
      expect(new Set(waits).size).toBeGreaterThan(20);
    }
  });
});

describe("back-off by what failed", () => {
  test.each([
    ["sandbox_lost", 1, 5_000],
    ["sandbox_lost", 2, 10_000],
    ["sandbox_lost", 9, 120_000],
    ["model_server", 1, 10_000],
    ["model_server", 3, 40_000],
    ["model_server", 9, 300_000],
    ["worker_lost", 1, 1_000],
    ["infrastructure", 9, 60_000],
    ["verifier_error", 1, 1_000],
  ] as const)("%s, try %i: at most %i ms, at least half of it", (ending, failures, full) => {
    const waits = Array.from({ length: 50 }, (_, at) => backOffMs(failures, `rollout-${at}`, ending));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(full / 2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(full);
    expect(backOffMs(failures, "rollout-1", ending)).toBe(waits[1]);
  });
});

describe("a lost worker", () => {
  const gone = { stage: "run", state: "active", leaseUntil: now } as const;

  test("its stage is delivered again within the same attempt", () => {
    expect(only({ ...gone, deliveries: 7, attempt: 2 })).toEqual([
      { do: "redeliver", rolloutId: "rollout-1", attempt: 2, stage: "run" },
    ]);
    expect(only({ ...gone, leaseUntil: now + 1 })).toEqual([]);
  });

  test("a stage that loses its worker over and over is an infrastructure failure", () => {
    expect(only({ ...gone, deliveries: 8 })).toMatchObject([
      { do: "retry", reason: "the run stage lost its worker 8 times" },
    ]);
    expect(only({ ...gone, deliveries: 8, attempt: 3 })).toMatchObject([{ do: "settle", ending: "worker_lost" }]);
  });

  test("a job that was never taken is sent again as often as it needs", () => {
    expect(only({ stage: "run", state: "queued", leaseUntil: now - 1, deliveries: 20 })).toMatchObject([
      { do: "redeliver" },
    ]);
    expect(only({ stage: "init", state: "queued", leaseUntil: null })).toMatchObject([{ do: "redeliver" }]);
  });
});

describe("a stage past its deadline", () => {
  const config = buildConfig({ dispatcher: { stageTimeoutMs: { init: 1_000, run: 2_000, evaluate: 3_000 } } });

  test.each([
    ["init", 1],
    ["run", 2],
    ["evaluate", 3],
  ] as const)("%s is ended although its worker renews, after a grace", (stage, seconds) => {
    const overdueAt = (stageStartedAt: number) =>
      only({ stage, state: "active", leaseUntil: now + 10_000, stageStartedAt }, { config });
    expect(overdueAt(now - seconds * 1_000 - 14_999)).toEqual([]);
    expect(overdueAt(now - seconds * 1_000 - 15_000)).toMatchObject([
      { do: "retry", reason: `the ${stage} stage passed its limit of ${seconds} s` },
    ]);
  });
});

describe("group policy", () => {
  const group = [lost({ rolloutId: "lost" }), scored({ rolloutId: "good" }), buildRollout({ rolloutId: "open" })];

  test("drop-group cancels what is left of a group with an unscored rollout, and no other group", () => {
    const other = buildRollout({ rolloutId: "other", groupId: "group-2" });
    expect(supervise([...group, other], policy("drop-group"))).toMatchObject([
      { do: "settle", rolloutId: "open", outcome: "cancelled" },
    ]);
  });

  test.each(["shrink", "wait"] as const)("%s leaves the siblings alone", (name) => {
    expect(supervise(group, policy(name))).toEqual([]);
  });

  test("what was cut because others were scored first is no loss", () => {
    const cut = lost({ rolloutId: "cut", outcome: "cancelled", ending: "not_needed" });
    expect(supervise([cut, scored(), buildRollout({ rolloutId: "open" })], policy("drop-group"))).toEqual([]);
  });

  test("drop-group bears as many losses as rollouts were started in excess", () => {
    const config = buildConfig({
      algorithm: { groupPolicy: "drop-group" },
      dispatcher: { overSample: { rollouts: 1 } },
    });
    expect(supervise(group, { config })).toEqual([]);
    const twice = [...group, lost({ rolloutId: "lost-2" })];
    expect(supervise(twice, { config })).toMatchObject([{ do: "settle", rolloutId: "open", ending: "cancelled" }]);
  });

  test("drop-group does not touch evaluations", () => {
    const steps = [buildStep({ purpose: "evaluate" })];
    expect(supervise(group, { ...policy("drop-group"), steps })).toEqual([]);
  });
});

describe("a group that has what it needs", () => {
  const enough = [scored({ rolloutId: "a" }), scored({ rolloutId: "b" })];
  const open = buildRollout({ rolloutId: "open", stage: "run", state: "active", leaseUntil: now + 5 });

  test("has the rest of it cut", () => {
    expect(supervise([...enough, open])).toMatchObject([
      { do: "settle", rolloutId: "open", outcome: "cancelled", ending: "not_needed" },
    ]);
  });

  test("not in an evaluation, nor in a batch of an outside trainer: there every rollout counts", () => {
    for (const over of [{ purpose: "evaluate" }, { source: "driven" }] as const) {
      expect(supervise([...enough, open], { steps: [buildStep(over)] })).toEqual([]);
    }
  });

  test("what an update began without is cut", () => {
    const steps = [buildStep({ state: "updating" })];
    expect(supervise([open], { steps })).toMatchObject([{ do: "settle", rolloutId: "open", ending: "not_needed" }]);
  });
});
