/** Grading, with real git and shells in folders of this machine; pytest in containers is apps/worker's swe-grading test. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { Ending } from "@rolldeck/contracts/endings";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { NewEvidence } from "@rolldeck/contracts/ports/task";
import { TestReport } from "@rolldeck/contracts/test-report";
import { afterAll, expect, test, vi } from "vitest";
import { localSandbox } from "../../testing/local-sandbox.ts";
import { collectPatch } from "./collect.ts";
import { gradeSwe } from "./grade.ts";
import { SweOptions } from "./options.ts";
import type { SweRow } from "./row.ts";
import { copyFolder, setUpRepository } from "./set-up.ts";

vi.setConfig({ testTimeout: 60_000 });

const home = mkdtempSync(join(tmpdir(), "swe-grade-"));
afterAll(() => {
  rmSync(copyFolder(home), { recursive: true, force: true });
  rmSync(home, { recursive: true, force: true });
});
const { signal } = new AbortController();
const put = (folder: string, path: string, content: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
};
const sh = (folder: string, script: string): string =>
  execFileSync("bash", ["-ec", script], { cwd: folder, encoding: "utf8", env: { PATH: process.env.PATH, HOME: home } });

// The repository's tests are files that a small runner of its own runs, in the words of pytest.
const image = join(home, "image");
mkdirSync(image);
put(image, "add.sh", "add() { echo $(($1 - $2)); }\n");
put(image, "tests/test_keep.sh", "true\n");
put(image, "src/_pytest/add.sh", "add() { echo $(($1 - $2)); }\n");
// A runner of the repository's own, and what it loads.
put(
  image,
  "sympy/testing/runtests.sh",
  'check() { if ( . "./$1" ); then echo "PASSED $1"; else echo "FAILED $1 - no"; bad=1; fi; }\n',
);
put(
  image,
  "ci/run.sh",
  '. ./add.sh; . ./sympy/testing/runtests.sh; bad=0; for t in tests/test_*.sh; do check "$t"; done; exit $bad\n',
);
put(image, "tests/test_add.sh", '[ "$(add 2 0)" = 2 ]\n');
sh(
  image,
  `git init -q; git config user.name a; git config user.email a@example.org; git add -A; git commit -qm base; mkdir tests/more`,
);
const baseCommit = sh(image, "git rev-parse HEAD").trim();
const testPatch = `diff --git a/tests/test_add.sh b/tests/test_add.sh
--- a/tests/test_add.sh
+++ b/tests/test_add.sh
@@ -1 +1 @@
-[ "$(add 2 0)" = 2 ]
+[ "$(add 2 1)" = 3 ]
`;
const runner = `. ./add.sh || exit 4; bad=0; for t in tests/test_*.sh; do if ( . "./$t" ); then echo "PASSED $t"; else echo "FAILED $t - no"; bad=1; fi; done; (exit $bad)`;
const evalScript = (command = runner): string =>
  `#!/bin/bash
git checkout -q ${baseCommit} -- tests/test_add.sh
git apply /var/tmp/rolldeck-test.patch || { echo '>>>>> Tests Errored'; exit 2; }
echo '>>>>> Start Test Output'
${command}
echo '>>>>> End Test Output'
git checkout -q ${baseCommit} -- tests/test_add.sh
`;
const row: SweRow = {
  kind: "swe-bench",
  instanceId: "made__up-1",
  repo: "made/up",
  version: "1",
  baseCommit,
  statement: "add subtracts",
  hintsText: null,
  image: "none",
  patch: null,
  testPatch,
  failToPass: ["tests/test_add.sh"],
  passToPass: ["tests/test_keep.sh"],
  evalType: "pass_and_fail",
  evalScript: evalScript(),
  logParser: "pytest",
  expected: null,
  commitContent: null,
};
const fix = "echo 'add() { echo $(($1 + $2)); }' > add.sh";

let made = 0;
const fresh = (): string => {
  const folder = join(home, `sandbox-${made++}`);
  execFileSync("cp", ["-a", image, folder]);
  return folder;
};
interface Case {
  readonly row?: Partial<SweRow>;
  readonly options?: Partial<SweOptions>;
  readonly ending?: Ending;
  readonly calls?: readonly string[];
}
/** An agent that runs this script, from set-up to evidence. */
async function collected(script: string): Promise<Map<string, Uint8Array>> {
  const folder = fresh();
  const sandbox = localSandbox(folder);
  await setUpRepository(row, sandbox, { history: "past", timeoutMs: 60_000 }, signal);
  sh(folder, script);
  return new Map((await collectPatch(sandbox, 60_000, signal)).map(({ name, content }) => [name, content]));
}
async function grade(left: ReadonlyMap<string, Uint8Array>, { row: more, options, ending, calls = [] }: Case = {}) {
  const kept = new Map<string, string>();
  const opened: string[] = [];
  const sandboxes = {
    open: async () => {
      const folder = fresh();
      opened.push(folder);
      return localSandbox(folder);
    },
    agent: () => Promise.reject(new Error("the agent's sandbox is not graded in")),
    collected: async (name: string) => left.get(name) ?? null,
    keep: async ({ name, content }: NewEvidence) => void kept.set(name, Buffer.from(content).toString("utf8")),
  };
  const rollout = {
    ending: ending ?? "finish_tool",
    finalAnswer: null,
    turns: 1,
    toolCalls: calls.map((command) => ({ name: "bash", arguments: { command }, failed: false })),
  } as const;
  const request = {
    row: { ...row, ...more },
    spec: {
      image: null,
      resources: noResources,
      network: { mode: "none" },
      workdir: null,
      environment: {},
      services: [],
    },
    options: SweOptions.parse({ ...options }),
  } as const;
  const report = () => {
    const text = kept.get(artifactNames.tests);
    return text === undefined ? null : TestReport.parse(JSON.parse(text));
  };
  try {
    return {
      verdict: await gradeSwe(request, rollout, { signal, judge: null, sandboxes }),
      error: null,
      report: report(),
      kept,
      opened,
    };
  } catch (error) {
    return { verdict: null, error, report: report(), kept, opened };
  }
}

test("the true fix is resolved, with everything kept that tells why", async () => {
  const { verdict, report, kept } = await grade(await collected(fix));
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
  const left = await collected("true");
  const untouched = await grade(left);
  expect(untouched.verdict).toMatchObject({ reward: 0, success: false, notes: "no change" });
  expect(untouched.opened).toEqual([]);
  const tried = await grade(left, { options: { gradeUnchanged: true } });
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
  const left = await collected(fix);
  for (const ending of ["turn_limit", "context_full", "finish_tool"] as const) {
    expect((await grade(left, { ending })).verdict).toMatchObject({ reward: 1 });
  }
  const words = await collected("echo '===== 1 passed ====='; echo 'PASSED tests/test_add.sh' > notes.txt");
  expect((await grade(words, { calls: ["echo '===== 1 passed ====='"] })).verdict).toMatchObject({ reward: 0 });
});

test.each([
  ["weakened tests", "echo true > tests/test_add.sh", "changed test files"],
  ["deleted tests", "rm tests/test_add.sh tests/test_keep.sh", "changed test files"],
  [
    "a folder in a test's place",
    "rm tests/test_add.sh; mkdir tests/test_add.sh; touch tests/test_add.sh/x",
    "changed test files",
  ],
  ["a conftest.py", "echo 'import os' > conftest.py", "added conftest.py"],
  ["settings of the runner", "printf '[pytest]\\naddopts = -p evil\\n' > pytest.ini", "changed pytest config"],
  ["a runner of its own", "mkdir pytest; echo > pytest/__init__.py", "put files in the test runner's place"],
])("%s earn nothing and are seen (fault 69)", async (_, script, flag) => {
  const { verdict, report } = await grade(await collected(script));
  expect(verdict).toMatchObject({ reward: 0, success: false });
  expect(verdict?.flags).toContain(flag);
  expect(report?.flags).toContain(flag);
});

const ownRunner = { evalScript: evalScript("bash ci/run.sh") };
const allPassed = "echo PASSED tests/test_add.sh; echo PASSED tests/test_keep.sh";

test.each<[string, string, Partial<SweRow>, number, string[]]>([
  ["a runner that the command executes", `echo '${allPassed}' > ci/run.sh`, ownRunner, 0, ["changed the test runner"]],
  [
    "what such a runner loads",
    `echo 'check() { echo "PASSED $1"; }' > sympy/testing/runtests.sh`,
    { ...ownRunner, repo: "sympy/sympy" },
    0,
    ["changed the test runner"],
  ],
  [
    "both of them, beside a fix",
    `${fix}; rm -r ci sympy`,
    { ...ownRunner, repo: "sympy/sympy" },
    1,
    ["changed the test runner"],
  ],
  [
    "a runner that the true fix changes, too, is the agent's to change",
    `${fix}; echo '# longer' >> ci/run.sh`,
    {
      evalScript: evalScript("bash ci/run.sh; tail -n 1 ci/run.sh; false"),
      patch: "diff --git a/ci/run.sh b/ci/run.sh\n",
    },
    0,
    ["the test log is not believed"],
  ],
  [
    "a repository that is itself such a runner",
    `${fix}; cp add.sh src/_pytest/add.sh; echo 'true' > src/_pytest/new.sh`,
    { evalScript: evalScript(runner.replace("./add.sh", "./src/_pytest/add.sh && . ./src/_pytest/new.sh")) },
    1,
    [],
  ],
])("%s", async (_, script, more, reward, flags) => {
  const { verdict, kept } = await grade(await collected(script), { row: more });
  expect([verdict?.reward, verdict?.flags]).toEqual([reward, flags]);
  expect(kept.get(artifactNames.testOutput)?.includes("# longer")).toBe(script.includes("# longer"));
});

test("what is put back is only what tests are: a fix with tests of its own stays a fix", async () => {
  const left = await collected(
    `${fix}; echo 'echo mine' > tests/test_mine.sh; echo false > tests/test_keep.sh; echo notes > NOTES`,
  );
  const run = `${runner}; ls tests NOTES`;
  const { verdict, kept } = await grade(left, {
    row: { evalScript: evalScript(`${run.replace("(exit $bad)", "true")}`) },
  });
  expect(verdict).toMatchObject({
    reward: 1,
    flags: expect.arrayContaining(["changed test files", "added test files"]),
  });
  const listed = kept.get(artifactNames.testOutput) ?? "";
  expect([listed.includes("test_mine"), listed.includes("NOTES")]).toEqual([false, true]);
});

test("calls that look for the answer are seen, and the reward stays the tests'", async () => {
  const calls = ["git log --all --oneline", "cat /eval.sh", "pip download made-up", "git log -3"];
  const { verdict } = await grade(await collected(fix), { calls });
  expect(verdict).toMatchObject({
    reward: 1,
    flags: ["looked for later history", "looked for grader files", "looked for the fix outside"],
  });
  expect((await grade(await collected(fix), { calls: ["git log -3", "git stash", "ls /"] })).verdict?.flags).toEqual(
    [],
  );
});

test("a log that reports no failure of a command that failed is not believed", async () => {
  const lie =
    "add() { echo $(($1 + $2)); }; echo 'PASSED tests/test_add.sh'; echo 'PASSED tests/test_keep.sh'; echo '>>>>> Test Exit Code: 0'; exit 1";
  const { verdict } = await grade(await collected(`cat > add.sh <<'END'\n${lie}\nEND\n`.replaceAll("\\n", "\n")), {
    row: { evalScript: evalScript(`( ${runner} )`) },
  });
  expect(verdict).toMatchObject({
    reward: 0,
    flags: ["the test log is not believed"],
    notes: expect.stringContaining("exited with 1"),
  });
});

test.each([
  ["no marker", "true", /no start marker/, { evalScript: "#!/bin/bash\necho nothing\n" }],
  ["tests that never end in the log", fix, /no end marker/, { evalScript: evalScript("exit 1") }],
  ["no test command", fix, /no result of any test and exited with 127/, { evalScript: evalScript("no-such-runner") }],
  ["a test patch that does not apply", fix, /Tests Errored/, { testPatch: testPatch.replace("add 2 0", "add 9 9") }],
])("%s is a verifier's error, never a reward", async (_, script, message, more) => {
  const { verdict, error } = await grade(await collected(script), { row: more, options: { gradeUnchanged: true } });
  expect(verdict).toBeNull();
  expect(error).toMatchObject({ boundary: "verifier", code: "no_result", message: expect.stringMatching(message) });
});

test("a log that does not fit is no log, and no shorter one either; what fits is read to its end (fault 36)", async () => {
  const left = await collected(fix);
  const printing = (bytes: number) => ({
    row: { evalScript: evalScript(`head -c ${bytes} /dev/zero | tr '\\0' x; echo; ${runner}`) },
  });
  const { verdict, error } = await grade(left, printing(33 * 1024 * 1024));
  expect(verdict).toBeNull();
  expect(error).toMatchObject({
    boundary: "verifier",
    code: "log_too_large",
    message: expect.stringMatching(/at most/),
  });
  expect((await grade(left, printing(31 * 1024 * 1024))).verdict).toMatchObject({ reward: 1, flags: [] });
});

test("code that breaks every test is told apart from tests that can't run: the same tests run without it", async () => {
  const { verdict, opened, report } = await grade(await collected("echo 'syntax (' > add.sh"), {
    row: { evalScript: evalScript(`( ${runner} )`) },
  });
  expect(verdict).toMatchObject({ reward: 0, notes: expect.stringContaining("the patch broke it") });
  expect(opened).toHaveLength(2);
  expect(report?.phases.map(({ name }) => name)).toContain("control");
});

test("tests that run out of time are not resolved and say so; or an error that is graded again (fault 68)", async () => {
  const left = await collected(`${fix}; echo 'sleep 30' >> add.sh`);
  const slow = await grade(left, { options: { evalTimeoutMs: 1_000 } });
  expect(slow.verdict).toMatchObject({
    reward: 0,
    notes: "the tests were not done after 1 s",
    flags: ["tests timed out"],
  });
  expect(slow.report?.command).toMatchObject({ timedOut: true, exitCode: null, timeoutMs: 1_000 });
  const again = await grade(left, { options: { evalTimeoutMs: 1_000, onTestTimeout: "error" } });
  expect(again.error).toMatchObject({ boundary: "verifier", code: "tests_timed_out", retryable: true });
});

test("a patch that does not fit is a state of its own, with git's words (fault 65)", async () => {
  const left = new Map(await collected(fix));
  const broken = Buffer.from(
    Buffer.from(left.get(artifactNames.patch) ?? [])
      .toString()
      .replaceAll("$1 - $2", "$1 % $2"),
  );
  left.set(artifactNames.patch, broken);
  const { error, report } = await grade(left);
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
  const left = new Map(await collected(fix));
  left.set(artifactNames.patch, Buffer.from("diff"));
  expect((await grade(left)).error).toMatchObject({ boundary: "verifier", code: "patch_incomplete" });
  left.delete(artifactNames.patch);
  expect((await grade(left)).error).toMatchObject({ boundary: "verifier", code: "patch_incomplete" });
  left.delete(artifactNames.patchState);
  expect((await grade(left)).error).toMatchObject({ boundary: "verifier", code: "nothing_collected" });
});

test("what is too large, or has nothing to be compared with, is told", async () => {
  const told = (state: string, bytes: number) =>
    new Map([[artifactNames.patchState, Buffer.from(JSON.stringify({ version: 1, state, bytes, notes: "" }))]]);
  expect((await grade(told("too_large", 99_000_000))).verdict).toMatchObject({
    reward: 0,
    notes: "a patch of 99000000 bytes is not taken",
  });
  expect((await grade(told("no_base", 0))).verdict).toMatchObject({
    reward: 0,
    notes: expect.stringContaining("can't be compared"),
  });
});

test("grading again needs no new rollout, and shows how far results spread (fault 68)", async () => {
  const left = await collected(fix);
  const counter = join(home, "gradings");
  const flaky = `echo x >> ${counter}; [ $(($(wc -l < ${counter}) % 2)) = 1 ] && . ./add.sh || add() { echo 0; }; ${runner.replace(". ./add.sh || exit 4; ", "")}`;
  const rewards: number[] = [];
  for (let grading = 0; grading < 5; grading++) {
    rewards.push((await grade(left, { row: { evalScript: evalScript(flaky) } })).verdict?.reward ?? -1);
  }
  expect(rewards).toEqual([1, 0, 1, 0, 1]);
});
