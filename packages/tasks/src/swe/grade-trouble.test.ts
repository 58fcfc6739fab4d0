/** Gradings that give no result, or none that can be believed: told as what they are, never as a wrong reward. */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { expect, test, vi } from "vitest";
import { fix, GradedRepository, runner, testPatch } from "../../testing/graded-repository.ts";

vi.setConfig({ testTimeout: 60_000 });

const repository = new GradedRepository();

test.each([
  ["no marker", "true", /no start marker/, { evalScript: "#!/bin/bash\necho nothing\n" }],
  ["tests that never end in the log", fix, /no end marker/, { evalScript: repository.evalScript("exit 1") }],
  [
    "no test command",
    fix,
    /no result of any test and exited with 127/,
    { evalScript: repository.evalScript("no-such-runner") },
  ],
  ["a test patch that does not apply", fix, /Tests Errored/, { testPatch: testPatch.replace("add 2 0", "add 9 9") }],
])("%s is a verifier's error, never a reward", async (_, script, message, more) => {
  const { verdict, error } = await repository.grade(await repository.collected(script), {
    row: more,
    options: { gradeUnchanged: true },
  });
  expect(verdict).toBeNull();
  expect(error).toMatchObject({ boundary: "verifier", code: "no_result", message: expect.stringMatching(message) });
});

test("a log that does not fit is no log, and no shorter one either; what fits is read to its end (fault 36)", async () => {
  const left = await repository.collected(fix);
  const printing = (bytes: number) => ({
    row: { evalScript: repository.evalScript(`head -c ${bytes} /dev/zero | tr '\\0' x; echo; ${runner}`) },
  });
  const { verdict, error } = await repository.grade(left, printing(33 * 1024 * 1024));
  expect(verdict).toBeNull();
  expect(error).toMatchObject({
    boundary: "verifier",
    code: "log_too_large",
    message: expect.stringMatching(/at most/),
  });
  expect((await repository.grade(left, printing(31 * 1024 * 1024))).verdict).toMatchObject({ reward: 1, flags: [] });
});

test("code that breaks every test is told apart from tests that can't run: the same tests run without it", async () => {
  const { verdict, opened, report } = await repository.grade(await repository.collected("echo 'syntax (' > add.sh"), {
    row: { evalScript: repository.evalScript(`( ${runner} )`) },
  });
  expect(verdict).toMatchObject({ reward: 0, notes: expect.stringContaining("the patch broke it") });
  expect(opened).toHaveLength(2);
  expect(report?.phases.map(({ name }) => name)).toContain("control");
});

const adding = (line: string): string => `cat > add.sh <<'END'\nadd() { echo $(($1 - $2)); }\n${line}\nEND\n`;

test.each([
  ["says what a grader's script says of its own trouble", "echo '>>>>> Tests Errored'", /Tests Errored/],
  ["ends the tests' script", "kill -9 $$", /no end marker/],
  ["prints more than is read", "head -c 40000000 /dev/zero | tr '\\0' x", /at most/],
])("code under test that %s is no verifier's error twice over: it earns nothing", async (_, line, why) => {
  const left = await repository.collected(adding(line));
  const { verdict, opened, report } = await repository.grade(left);
  expect(verdict).toMatchObject({ reward: 0, success: false, notes: expect.stringMatching(why) });
  expect(verdict?.notes).toContain("the patch broke it");
  expect(opened).toHaveLength(3);
  expect(report?.phases.map(({ name }) => name)).toContain("control");
});

test("a log that breaks off once is a verifier's error: it is graded again", async () => {
  const left = await repository.collected(
    adding(`[ -e ${repository.home}/once ] || { touch ${repository.home}/once; kill -9 $$; }`),
  );
  const { verdict, error } = await repository.grade(left);
  expect(verdict).toBeNull();
  expect(error).toMatchObject({ boundary: "verifier", code: "no_result" });
});

test("tests that run out of time are not resolved and say so; or an error that is graded again (fault 68)", async () => {
  const left = await repository.collected(`${fix}; echo 'sleep 30' >> add.sh`);
  const slow = await repository.grade(left, { options: { evalTimeoutMs: 1_000 } });
  expect(slow.verdict).toMatchObject({
    reward: 0,
    notes: "the tests were not done after 1 s",
    flags: ["tests timed out"],
  });
  expect(slow.report?.command).toMatchObject({ timedOut: true, exitCode: null, timeoutMs: 1_000 });
  const again = await repository.grade(left, { options: { evalTimeoutMs: 1_000, onTestTimeout: "error" } });
  expect(again.error).toMatchObject({ boundary: "verifier", code: "tests_timed_out", retryable: true });
});

test("a patch that does not fit is a state of its own, with git's words (fault 65)", async () => {
  const left = new Map(await repository.collected(fix));
  const broken = Buffer.from(
    Buffer.from(left.get(artifactNames.patch) ?? [])
      .toString()
      .replaceAll("$1 - $2", "$1 % $2"),
  );
  left.set(artifactNames.patch, broken);
  const { error, report } = await repository.grade(left);
  expect(error).toMatchObject({
    boundary: "verifier",
    code: "patch_does_not_apply",
    message: expect.stringContaining("add.sh"),
  });
  expect(report).toMatchObject({
    success: false,
    patch: { applied: false, by: null, message: expect.stringContaining("patch does not apply") },
  });
});

test("a patch that was cut on its way, or never came, is no empty patch (fault 65)", async () => {
  const left = new Map(await repository.collected(fix));
  left.set(artifactNames.patch, Buffer.from("diff"));
  expect((await repository.grade(left)).error).toMatchObject({ boundary: "verifier", code: "patch_incomplete" });
  left.delete(artifactNames.patch);
  expect((await repository.grade(left)).error).toMatchObject({ boundary: "verifier", code: "patch_incomplete" });
  left.delete(artifactNames.patchState);
  expect((await repository.grade(left)).error).toMatchObject({ boundary: "verifier", code: "nothing_collected" });
});

test("what is too large, or has nothing to be compared with, is told", async () => {
  const told = (state: string, bytes: number) =>
    new Map([[artifactNames.patchState, Buffer.from(JSON.stringify({ version: 1, state, bytes, notes: "" }))]]);
  expect((await repository.grade(told("too_large", 99_000_000))).verdict).toMatchObject({
    reward: 0,
    notes: "a patch of 99000000 bytes is not taken",
  });
  expect((await repository.grade(told("no_base", 0))).verdict).toMatchObject({
    reward: 0,
    notes: expect.stringContaining("can't be compared"),
  });
});
