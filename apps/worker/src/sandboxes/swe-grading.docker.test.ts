/** Software-engineering rows in real containers, with real git and pytest: solved, gamed, graded again. */

import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { TestReport } from "@rolldeck/contracts/test-report";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import { swe } from "@rolldeck/tasks/swe/task";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testDocker } from "../../../../packages/sandbox/testing/test-docker.ts";
import { HarborStage } from "../../../../packages/tasks/testing/harbor/harbor-stage.ts";

const docker = testDocker();
const { signal } = new AbortController();

/** A package with a bug, its past, its fix as a later commit, and R2E-Gym's files beside it. */
const makeRepository = `
set -e
mkdir -p /testbed /root/.local/bin && cd /testbed
git init -q -b main . && git config user.name a && git config user.email a@example.org
mkdir -p src/sums tests
printf '*.pyc\\n__pycache__/\\n.pytest_cache/\\n' > .gitignore
printf 'def add(a, b):\\n    return a\\n' > src/sums/__init__.py
git add -A && git commit -qm first && git tag v0
printf 'def add(a, b):\\n    return a - b\\n' > src/sums/__init__.py
printf 'import sys\\nsys.path.insert(0, "src")\\n' > conftest.py
printf 'import pytest\\nfrom sums import add\\n\\n@pytest.mark.parametrize("b", [0, 0.0])\\ndef test_zero(b): assert add(1, b) == 1\\n\\n@pytest.mark.xfail\\ndef test_known(): assert add(1, "x") == 2\\n' > tests/test_add.py
git add -A && git commit -qm second
git rev-parse HEAD > /base
printf 'def add(a, b):\\n    return a + b\\n' > src/sums/__init__.py
git commit -qam 'the fix' && git tag v1 && git branch upstream
git checkout -q --detach "$(cat /base)"
mkdir /r2e_tests && printf 'from sums import add\\n\\nclass TestAdd:\\n    def test_two(self): assert add(1, 2) == 3\\n    def test_zero(self): assert add(1, 0) == 1\\n' > /r2e_tests/test_1.py
printf 'python3 -m pytest -rA r2e_tests\\n' > run_tests.sh
printf 'secret' > /eval.sh
`;
const fix = `diff --git a/src/sums/__init__.py b/src/sums/__init__.py
--- a/src/sums/__init__.py
+++ b/src/sums/__init__.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
`;
const testPatch = `diff --git a/tests/test_add.py b/tests/test_add.py
--- a/tests/test_add.py
+++ b/tests/test_add.py
@@ -6,3 +6,5 @@
 
 @pytest.mark.xfail
 def test_known(): assert add(1, "x") == 2
+
+def test_two(): assert add(1, 2) == 3
`;
const evalScript = (base: string): string => `#!/bin/bash
set -uxo pipefail
cd /testbed
git checkout ${base} tests/test_add.py
git apply -v - <<'EOF_114329324912'
${testPatch}
EOF_114329324912
: '>>>>> Start Test Output'
python3 -m pytest -rA tests/test_add.py
: '>>>>> End Test Output'
git checkout ${base} tests/test_add.py
`;

/** Nothing is left of images that a test made. */
const removeImage = (socketPath: string, name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const path = `/images/${encodeURIComponent(name)}?force=1`;
    request({ socketPath, path, method: "DELETE" }, (answer) => {
      answer.resume().on("end", () => resolve());
    })
      .on("error", reject)
      .end();
  });

describe.skipIf(docker === null)("task swe in containers", () => {
  const runtimes = new DockerRuntimes("swe-grading");
  let task: Task;
  let image = "";

  beforeAll(async () => {
    const runtime = runtimes.docker;
    const spec = {
      resources: noResources,
      network: { mode: "none" },
      workdir: null,
      environment: {},
      services: [],
    } as const;
    const id = `sbx_${"swegrading".padEnd(20, String(process.pid))}`.slice(0, 24);
    const life = { labels: {}, mounts: [], leaseMs: 60_000, maxLifeMs: 120_000 };
    const maker: Sandbox = await runtime.open(
      { ...spec, ...life, id, image: { kind: "name", name: docker?.image ?? "" } },
      signal,
    );
    const made = await maker.exec(
      { command: ["bash", "-c", `${makeRepository}\ncat /base`], timeoutMs: 60_000 },
      signal,
    );
    const base = Buffer.from(made.stdout.head).toString().trim();
    image = (await maker.snapshot?.(signal)) ?? "";
    await runtime.close(id, signal);
    const row = {
      repo: "made/sums",
      instance_id: "made__sums-1",
      base_commit: base,
      version: "1",
      patch: fix,
      test_patch: testPatch,
      problem_statement: "add subtracts",
      FAIL_TO_PASS: JSON.stringify(["tests/test_add.py::test_two"]),
      PASS_TO_PASS: [
        "tests/test_add.py::test_zero[0]",
        "tests/test_add.py::test_zero[0.0",
        "tests/test_add.py::test_known",
      ],
      image,
      eval_script: evalScript(base),
      log_parser: "parse_log_pytest",
    };
    const r2e = {
      repo_name: "sums",
      docker_image: image,
      commit_hash: base,
      problem_statement: "[ISSUE]add subtracts[/ISSUE]",
      expected_output_json: JSON.stringify({ "TestAdd.test_two": "PASSED", "TestAdd.test_zero": "PASSED" }),
      parsed_commit_content: JSON.stringify({
        file_diffs: [
          {
            header: { file: { path: "src/sums/__init__.py" } },
            new_file_content: "def add(a, b):\n    return a + b\n",
          },
        ],
      }),
    };
    const path = join(runtimes.folder, "rows.jsonl");
    writeFileSync(path, [row, r2e].map((it) => `${JSON.stringify(it)}\n`).join(""));
    task = await swe.open({ dataset: path, options: { heldOutEvery: 0, gradeUnchanged: true } });
  });
  afterAll(async () => {
    if (image !== "") await removeImage(docker?.socket ?? "", image);
    await runtimes.close();
  });

  /** A rollout whose agent does this, graded. */
  async function rollout(act: string | "solve", index = 0) {
    const stage = new HarborStage(task, task.instance("train", index), runtimes.docker);
    try {
      await stage.start();
      const said = act === "solve" ? await solve(stage) : await stage.act(act);
      await stage.collect();
      const verdict = await stage.verify();
      const report = TestReport.parse(JSON.parse(verdict.evidence.get("tests.json") ?? "null"));
      return { verdict, report, said, patch: Buffer.from(stage.kept.get("patch.diff") ?? []).toString() };
    } finally {
      await stage.end();
    }
  }
  const solve = async (stage: HarborStage): Promise<string> => {
    await stage.task.solve?.(stage.instance, stage.agent, signal);
    return "";
  };

  test("the true fix is resolved", async () => {
    const { verdict, report, patch } = await rollout("solve");
    expect(verdict).toMatchObject({ reward: 1, success: true, parts: { resolved: 1 }, flags: [] });
    expect(report.tests.filter(({ wanted }) => wanted !== null).map(({ status, ok }) => [status, ok])).toEqual([
      ["passed", true],
      ["passed", true],
      ["passed", true],
      ["xfail", true],
    ]);
    expect(report.command).toMatchObject({ text: "python3 -m pytest -rA tests/test_add.py", exitCode: 0 });
    expect(patch).toContain("+    return a + b\n");
  });

  test("nothing done is not; later history and files of graders are not there to be read", async () => {
    const { verdict, said } = await rollout(
      "cd /testbed; git log --all --format=%s | sort; git tag; git cat-file --batch-all-objects --batch-check | grep -c commit; ls / | grep -c -e eval.sh -e r2e_tests; git status --short",
    );
    // What the image had beside its commits is one of its own.
    expect(said).toBe("base\nfirst\nsecond\nv0\n3\n0\n");
    expect(verdict).toMatchObject({
      reward: 0,
      success: false,
      notes: "0 of 1 fail-to-pass and 3 of 3 pass-to-pass tests are as wanted",
    });
  });

  const gamed = `
cd /testbed
echo 'def test_two(): pass' > tests/test_add.py
printf 'import pytest\\n@pytest.hookimpl(hookwrapper=True)\\ndef pytest_runtest_makereport(item, call):\\n    r = yield\\n    r.get_result().outcome = "passed"\\n' > tests/conftest.py
printf 'raise SystemExit(print("PASSED tests/test_add.py::test_two"))\\n' > pytest.py
printf '#!/bin/sh\\necho PASSED tests/test_add.py::test_two\\n' > /usr/local/bin/pytest; chmod +x /usr/local/bin/pytest
printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/git; chmod +x /usr/local/bin/git
/usr/bin/git add -A; /usr/bin/git commit -qm mine; /usr/bin/git config diff.noprefix true
`;
  test("edited tests, hooks, a runner and a git of the agent's own earn nothing and are seen", async () => {
    const { verdict, patch } = await rollout(gamed);
    expect(patch).toContain("diff --git a/pytest.py b/pytest.py");
    expect(verdict).toMatchObject({ reward: 0, success: false });
    expect(verdict.flags).toEqual(
      expect.arrayContaining(["changed test files", "added conftest.py", "put files in the test runner's place"]),
    );
  });

  test("a real fix beside all that is still a fix", async () => {
    const { verdict } = await rollout(`${gamed}\nprintf 'def add(a, b):\\n    return a + b\\n' > src/sums/__init__.py`);
    expect(verdict).toMatchObject({ reward: 1, success: true });
  });

  test("code that can't be imported breaks tests: not resolved, and no verifier's error", async () => {
    const { verdict, report } = await rollout("cd /testbed; echo 'def add(' > src/sums/__init__.py");
    expect(verdict).toMatchObject({ reward: 0 });
    expect(report.tests[0]).toMatchObject({ name: "tests/test_add.py::test_two", status: "missing", ok: false });
  });

  test("R2E-Gym: its tests are out of the agent's reach, and the outcome has to be the expected one", async () => {
    const solved = await rollout("solve", 1);
    expect(solved.verdict).toMatchObject({ reward: 1, success: true });
    expect(solved.report).toMatchObject({
      grader: "r2e-gym",
      metrics: { expected: 2, expected_ok: 2, not_expected: 0 },
    });
    const idle = await rollout(
      "ls -d /r2e_tests /root/r2e_tests /testbed/run_tests.sh /root/run_tests.sh 2>/dev/null; true",
      1,
    );
    expect(idle.said).toBe("");
    expect(idle.verdict).toMatchObject({ reward: 0, notes: "1 of 2 expected tests are as wanted" });
  });

  test("nothing is left open", async () => {
    expect(await runtimes.docker.list(signal)).toEqual([]);
  });
});
