/** Grading: what earns the reward, and what is told of it. pytest in containers is apps/worker's swe-grading test. */
import { join } from "node:path";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { expect, test, vi } from "vitest";
import { fix, GradedRepository, runner } from "../../testing/graded-repository.ts";

vi.setConfig({ testTimeout: 60_000 });

const repository = new GradedRepository();

test("the true fix is resolved, with everything kept that tells why", async () => {
  const { verdict, report, kept } = await repository.grade(await repository.collected(fix));
  expect(verdict).toEqual({ reward: 1, success: true, parts: { resolved: 1 }, notes: null, flags: [] });
  expect(report).toMatchObject({
    grader: "swe-bench",
    success: true,
    patch: { applied: true, by: "git apply" },
    command: { exitCode: 0, timedOut: false },
    tests: [
      { name: "tests/test_add.sh", status: "passed", wanted: "fail-to-pass", ok: true },
      { name: "tests/test_keep.sh", status: "passed", wanted: "pass-to-pass", ok: true },
    ],
    metrics: { fail_to_pass: 1, fail_to_pass_ok: 1, pass_to_pass: 1, pass_to_pass_ok: 1 },
  });
  expect(report?.phases.map(({ name }) => name)).toEqual(["open", "apply", "restore", "tests"]);
  expect(kept.get(artifactNames.testOutput)).toContain("PASSED tests/test_add.sh");
});

test("no change is not resolved and opens nothing, unless tests are to decide (fault 65)", async () => {
  const left = await repository.collected("true");
  const untouched = await repository.grade(left);
  expect(untouched.verdict).toMatchObject({ reward: 0, success: false, notes: "no change" });
  expect(untouched.opened).toEqual([]);
  const tried = await repository.grade(left, { options: { gradeUnchanged: true } });
  expect(tried.verdict).toMatchObject({
    reward: 0,
    notes: "0 of 1 fail-to-pass and 1 of 1 pass-to-pass tests are as wanted",
  });
  expect(tried.report?.tests[0]).toMatchObject({
    name: "tests/test_add.sh",
    status: "failed",
    ok: false,
    message: "no",
  });
});

test("how the rollout ended and what it printed change nothing: right work is rewarded, words are not (fault 70)", async () => {
  const left = await repository.collected(fix);
  for (const ending of ["turn_limit", "context_full", "finish_tool"] as const) {
    expect((await repository.grade(left, { ending })).verdict).toMatchObject({ reward: 1 });
  }
  const words = await repository.collected("echo '===== 1 passed ====='; echo 'PASSED tests/test_add.sh' > notes.txt");
  expect((await repository.grade(words, { calls: ["echo '===== 1 passed ====='"] })).verdict).toMatchObject({
    reward: 0,
  });
});

test("what is put back is only what tests are: a fix with tests of its own stays a fix", async () => {
  const left = await repository.collected(
    `${fix}; echo 'echo mine' > tests/test_mine.sh; echo false > tests/test_keep.sh; echo notes > NOTES`,
  );
  const run = `${runner}; ls tests NOTES`;
  const { verdict, kept } = await repository.grade(left, {
    row: { evalScript: repository.evalScript(`${run.replace("(exit $bad)", "true")}`) },
  });
  expect(verdict).toMatchObject({
    reward: 1,
    flags: expect.arrayContaining(["changed test files", "added test files"]),
  });
  const listed = kept.get(artifactNames.testOutput) ?? "";
  expect([listed.includes("test_mine"), listed.includes("NOTES")]).toEqual([false, true]);
});

test("grading again needs no new rollout, and shows how far results spread (fault 68)", async () => {
  const left = await repository.collected(fix);
  const counter = join(repository.home, "gradings");
  const flaky = `echo x >> ${counter}; [ $(($(wc -l < ${counter}) % 2)) = 1 ] && . ./add.sh || add() { echo 0; }; ${runner.replace(". ./add.sh || exit 4; ", "")}`;
  const rewards: number[] = [];
  for (let grading = 0; grading < 5; grading++) {
    rewards.push(
      (await repository.grade(left, { row: { evalScript: repository.evalScript(flaky) } })).verdict?.reward ?? -1,
    );
  }
  expect(rewards).toEqual([1, 0, 1, 0, 1]);
});
