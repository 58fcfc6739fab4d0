import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plainTasks } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedGroup, seedRun, seedStep } from "../../testing/seed-run.ts";
import { readEvents } from "../reads/read-events.ts";
import { readSnapshot } from "../reconcile/read-snapshot.ts";
import { reopenEvaluation } from "./reopen-evaluation.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const evaluation = { kind: "evaluate" as const, evaluation: { samples: 4 } };

/** An evaluation that ended with one rollout scored, one graded in vain, one lost while it ran. */
async function ended(status: "stopped" | "failed" | "completed" | "running" = "stopped") {
  const runId = await seedRun(database.pool, { config: evaluation, status });
  const rollouts = [
    { reward: 1, ending: "finish_tool" as const },
    { reward: null, ending: "verifier_error" as const },
    { reward: null, ending: "cancelled" as const },
  ];
  const step = await seedStep(database.pool, runId, { step: 0, purpose: "evaluate", state: "cancelled", rollouts });
  const [scored = "", ungraded = "", lost = ""] = step.rolloutIds;
  await database.pool.query(
    `update rollouts set run_ending = 'finish_tool', final_answer = '7', turns = 3, evaluate_failures = 3 where id = $1`,
    [ungraded],
  );
  return { runId, stepId: step.stepId, scored, ungraded, lost };
}

const row = async (id: string) => (await database.pool.query("select * from rollouts where id = $1", [id])).rows[0];

describe("an ended evaluation that is taken up again", () => {
  it("keeps what is scored, grades again what had ended, runs again what had not", async () => {
    const { runId, stepId, scored, ungraded, lost } = await ended();
    const before = await row(scored);
    expect(await reopenEvaluation(database.pool, runId, "again")).toEqual({ rollouts: 2 });
    expect(await row(scored)).toEqual(before);
    expect(await row(ungraded)).toMatchObject({
      state: "waiting",
      stage: "evaluate",
      attempt: 1,
      ending: "finish_tool",
      final_answer: "7",
      turns: 3,
      outcome: null,
      evaluate_failures: 0,
    });
    expect(await row(lost)).toMatchObject({ state: "waiting", stage: "init", attempt: 2, ending: null, outcome: null });
    // Their tries begin with the attempt that they have now.
    const found = await readSnapshot(database.pool, runId, plainTasks);
    const tries = new Map(found?.snapshot.rollouts.map(({ rolloutId, firstAttempt }) => [rolloutId, firstAttempt]));
    expect([tries.get(ungraded), tries.get(lost)]).toEqual([1, 2]);
    const { rows: runs } = await database.pool.query(
      "select status, ended_at, wake > handled_wake as woken from runs where id = $1",
      [runId],
    );
    expect(runs[0]).toEqual({ status: "queued", ended_at: null, woken: true });
    const { rows: steps } = await database.pool.query("select state, ended_at from steps where id = $1", [stepId]);
    expect(steps[0]).toEqual({ state: "gathering", ended_at: null });
    const { rows: attempts } = await database.pool.query(
      "select attempt from attempts where rollout_id = $1 order by 1",
      [lost],
    );
    expect(attempts).toEqual([{ attempt: 1 }, { attempt: 2 }]);
    const page = await readEvents(database.pool, runId, 0, 100);
    expect(page?.events.map(({ body }) => body.type)).toEqual([
      "run-status",
      "step-status",
      "rollout-status",
      "rollout-status",
    ]);
    expect(page?.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  });

  it.each(["failed", "stopped"] as const)(
    "that is %s is reopened once, however often and at once it is asked",
    async (status) => {
      const { runId, lost } = await ended(status);
      const asked = await Promise.allSettled([1, 2, 3, 4].map(() => reopenEvaluation(database.pool, runId, "again")));
      expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const answer of asked) if (answer.status === "rejected") expect(answer.reason).toBeInstanceOf(ConflictError);
      expect((await row(lost)).attempt).toBe(2);
    },
  );

  it("was stopped before its step was made: it only goes on", async () => {
    const runId = await seedRun(database.pool, { config: evaluation, status: "stopped" });
    const asked = await Promise.allSettled([1, 2, 3].map(() => reopenEvaluation(database.pool, runId, "again")));
    const answered = asked.filter((answer) => answer.status === "fulfilled");
    expect(answered.map(({ value }) => value)).toEqual([{ rollouts: 0 }]);
  });
});

describe("refused", () => {
  it.each([
    ["a run that is not there", async () => "nothere123", NotFoundError, /no run/],
    ["one that runs", async () => (await ended("running")).runId, ConflictError, /running already/],
    ["a training run", async () => seedRun(database.pool, { status: "stopped" }), ConflictError, /only an evaluation/],
    [
      "one with every rollout scored",
      async () => {
        const runId = await seedRun(database.pool, { config: evaluation, status: "completed" });
        const rollouts = [{ reward: 0, ending: "turn_limit" as const }];
        const { stepId } = await seedStep(database.pool, runId, { step: 0, purpose: "evaluate", rollouts });
        await seedGroup(database.pool, { runId, stepId, instanceIndex: 9, rollouts });
        return runId;
      },
      ConflictError,
      /nothing left/,
    ],
  ])("%s", async (_, make, kind, words) => {
    const runId = await make();
    const asked = reopenEvaluation(database.pool, runId, "again");
    await expect(asked).rejects.toThrow(kind);
    await expect(asked).rejects.toThrow(words);
  });
});
