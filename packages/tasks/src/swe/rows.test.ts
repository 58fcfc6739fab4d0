/** Rows as data sets publish them, opened, shown and refused. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, describe, expect, test } from "vitest";
import { evalScriptOf } from "./eval-script.ts";
import { imageOf, isImageName } from "./images.ts";
import { patchFiles } from "./patch-files.ts";
import { type SweRow, sweRow } from "./row.ts";
import { swe } from "./task.ts";
import { testCommandOf } from "./test-commands.ts";

const home = mkdtempSync(join(tmpdir(), "swe-rows-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let files = 0;
const lines = (rows: readonly unknown[]): string => {
  const path = join(home, `rows-${files++}.jsonl`);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return path;
};
const open = (rows: readonly unknown[], options = {}) =>
  swe.open({ dataset: lines(rows), options: { heldOutEvery: 0, ...options } });
const parse = (row: unknown): SweRow => sweRow("problem_statement").parse(row);

const commit = "0123456789abcdef0123456789abcdef01234567";
const testPatch = [
  "diff --git a/tests/admin/tests.py b/tests/admin/tests.py",
  "--- a/tests/admin/tests.py",
  "+++ b/tests/admin/tests.py",
  "@@ -1 +1 @@",
  "-a",
  "+b",
  "diff --git a/tests/new_app/test_it.py b/tests/new_app/test_it.py",
  "new file mode 100644",
  "diff --git a/tests/data/x.json b/tests/data/x.json",
  "",
].join("\n");
const verified = {
  repo: "django/django",
  instance_id: "django__django-11099",
  base_commit: commit,
  version: "3.0",
  patch: "diff --git a/x b/x\n",
  test_patch: testPatch,
  problem_statement: "  It breaks.\r\n\n\tBadly. ",
  hints_text: "try that",
  created_at: "2019-03-20T03:46:18Z",
  FAIL_TO_PASS: '["test_a (tests.A)", "test_b (tests.A)"]',
  PASS_TO_PASS: "[]",
  environment_setup_commit: commit,
  difficulty: "<15 min fix",
};
const gym = {
  ...verified,
  repo: "getmoto/moto",
  instance_id: "getmoto__moto-4847",
  version: "3.0",
  FAIL_TO_PASS: ["tests/a.py::b"],
  PASS_TO_PASS: ["tests/a.py::c"],
  environment_setup_commit: undefined,
};
const smith = {
  instance_id: "oauthlib__oauthlib.1fd52536.combine_file__09vlzwgc",
  repo: "swesmith/oauthlib__oauthlib.1fd52536",
  image_name: "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536",
  base_commit: commit,
  patch: "diff --git a/x b/x\n",
  problem_statement: "It breaks.",
  FAIL_TO_PASS: ["tests/b.py::x", "tests/a.py::y", "tests/b.py::z"],
  PASS_TO_PASS: ["tests/a.py::w", "tests/other.py::v"],
};
const r2e = {
  repo_name: "orange3",
  docker_image: "namanjain12/orange3_final:2d9617bd0cb1f0ba61771258410ab8fae8e7e24d",
  commit_hash: "2d9617bd0cb1f0ba61771258410ab8fae8e7e24d",
  parsed_commit_content: "{}",
  problem_statement: "[ISSUE]\n**It breaks.**\n[/ISSUE]",
  expected_output_json: '{"TestA.test_x": "PASSED", "\\u001b[1mTestA.test_y\\u001b[0m - why": "FAILED"}',
};

describe("rows", () => {
  test("of SWE-bench: lists of tests as JSON text, everything else verbatim", () => {
    expect(parse(verified)).toMatchObject({
      kind: "swe-bench",
      instanceId: "django__django-11099",
      statement: verified.problem_statement,
      failToPass: ["test_a (tests.A)", "test_b (tests.A)"],
      passToPass: [],
      testPatch,
      baseCommit: commit,
    });
  });

  test("of SWE-Gym: lists of tests as lists", () => {
    expect(parse(gym)).toMatchObject({ kind: "swe-gym", failToPass: ["tests/a.py::b"], passToPass: ["tests/a.py::c"] });
  });

  test("of R2E-Gym, in its own words and in SkyRL-Agent's, as an object and as text", () => {
    const expected = { "TestA.test_x": "PASSED", "TestA.test_y": "FAILED" };
    const own = parse(r2e);
    expect(own).toMatchObject({ kind: "r2e-gym", image: r2e.docker_image, instanceId: r2e.docker_image, expected });
    expect([own.statement, own.baseCommit]).toEqual(["\n**It breaks.**\n", null]);
    const { docker_image, repo_name, commit_hash, ...rest } = r2e;
    const instance = { ...rest, instance_id: docker_image, repo: repo_name, base_commit: commit_hash };
    const skyrl = { prompt: [{ role: "user", content: "x" }], data_source: "r2e-gym", ability: "coding", instance };
    expect(parse(skyrl)).toEqual(own);
    expect(parse({ ...skyrl, instance: JSON.stringify(instance) })).toEqual(own);
  });

  test("of SWE-smith: the bug is made by its patch, and only files of failing tests run", () => {
    const row = parse(smith);
    expect(row).toMatchObject({ kind: "swe-smith", baseCommit: null });
    const { text, tellsExitCode } = evalScriptOf(row, "/testbed");
    expect(text).toContain("pytest --disable-warnings --color=no --tb=no --verbose tests/a.py tests/b.py\n");
    expect(tellsExitCode).toBe(true);
  });

  test.each([
    [{ ...verified, problem_statement: " " }, "problem_statement: is missing or empty"],
    [{ ...verified, FAIL_TO_PASS: "[]" }, "FAIL_TO_PASS: is missing or empty"],
    [{ ...verified, FAIL_TO_PASS: "test_a" }, "FAIL_TO_PASS: is neither a list of names nor one as JSON text"],
    [{ ...verified, PASS_TO_PASS: [["test_a"]] }, "PASS_TO_PASS: is neither a list of names nor one as JSON text"],
    [{ ...verified, base_commit: null }, "base_commit: is missing"],
    [{ ...verified, base_commit: "--all" }, "base_commit: is missing or no commit's name"],
    [{ ...verified, repo: "made/up" }, "eval_script: is missing, and no test command is known for made/up"],
    [{ ...verified, repo: "made/up", eval_script: "x" }, "log_parser: is missing"],
    [{ ...verified, eval_script: "x", log_parser: "parse_log_gotest" }, 'log_parser: "parse_log_gotest" is not here'],
    [{ ...verified, image: "no image:at all" }, "image: gives "],
    [{ ...r2e, expected_output_json: "[]" }, "expected_output_json: "],
    [{ ...smith, patch: null }, "patch: is missing"],
  ])("what can't be graded is refused by its field when the data set is opened (%#)", async (row, message) => {
    await expect(open([verified, row])).rejects.toMatchObject({
      issues: [{ path: "dataset", message: expect.stringMatching(/rows-\d+\.jsonl line 2: /) }],
    });
    await expect(open([verified, row])).rejects.toThrow(message);
  });

  test("a Parquet file of them is the same data set", async () => {
    const path = join(home, "test-00000-of-00001.parquet");
    const columns = [
      "repo",
      "instance_id",
      "base_commit",
      "version",
      "patch",
      "test_patch",
      "problem_statement",
      "FAIL_TO_PASS",
      "PASS_TO_PASS",
    ] as const;
    const columnData = columns.map((name) => ({ name, data: [verified[name]], type: "STRING" as const }));
    writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData })));
    const fromParquet = await swe.open({ dataset: path, options: { heldOutEvery: 1 } });
    const { hints_text, ...plain } = verified;
    const fromLines = await open([plain], { heldOutEvery: 1 });
    expect(fromParquet.instance("evaluate", 0).state).toEqual(fromLines.instance("evaluate", 0).state);
    expect(fromParquet.instance("evaluate", 0).instanceId).toMatch(/^django__django-11099-evaluate-0-[0-9a-f]{8}$/);
    expect([fromParquet.size("train"), fromParquet.size("evaluate")]).toEqual([0, 1]);
  });
});

describe("the script of a row without one", () => {
  test("resets what the test patch changes, takes away what it adds, and names the tests as their runner does", () => {
    const { text, command } = evalScriptOf(parse(verified), "/testbed");
    expect(command).toBe(
      "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 admin.tests new_app.test_it",
    );
    const reset = `git checkout ${commit} -- tests/admin/tests.py tests/data/x.json`;
    expect(text.split(reset)).toHaveLength(3);
    expect(text).toContain("rm -f -- tests/new_app/test_it.py");
    expect(text).toContain("ROLLDECK_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\n");
    expect(text.trimEnd().split("\n").at(-1)).toBe('exit "$ROLLDECK_TEST_EXIT_CODE"');
  });

  test("names of mypy's cases, and paths that a shell would take apart", () => {
    const cases = {
      ...gym,
      repo: "python/mypy",
      version: "1.7",
      test_patch: "diff --git a/x.test b/x.test\n+[case testOne]\n+[case testTwo]\n",
    };
    expect(evalScriptOf(parse(cases), "/testbed").command).toBe("pytest -rA -k 'testOne or testTwo'");
    const odd = { ...gym, test_patch: "diff --git a/tests/a b's.py b/tests/a b's.py\n" };
    expect(evalScriptOf(parse(odd), "/testbed").command).toBe("pytest -n0 -rA 'tests/a b'\\''s.py'");
  });

  test("a row's own is kept, but for the tests' exit code", () => {
    const own =
      "#!/bin/bash\nset -uxo pipefail\n: '>>>>> Start Test Output'\npytest x\n: '>>>>> End Test Output'\ngit checkout x\n";
    const row = { ...verified, eval_script: own, log_parser: "parse_log_pytest_v2" };
    expect(evalScriptOf(parse(row), "/testbed").text.replaceAll(/^.*ROLLDECK_TEST_EXIT_CODE.*\n/gmu, "")).toBe(
      `${own}\n`.replace(/\n\n$/, "\n\n"),
    );
    const telling = own.replace("git checkout", 'echo ">>>>> Test Exit Code: $?"\ngit checkout');
    expect(evalScriptOf(parse({ ...row, eval_script: telling }), "/testbed")).toMatchObject({
      text: telling,
      tellsExitCode: false,
    });
  });

  test("commands differ by version where they do", () => {
    expect(testCommandOf("django/django", "1.9")?.command).toBe("./tests/runtests.py --verbosity 2");
    expect(testCommandOf("astropy/astropy", "1.3")?.command).toContain("-vv");
    expect(testCommandOf("Project-MONAI/MONAI", "1.2")).toMatchObject({ command: "pytest -rA", parser: "pytest" });
    expect(testCommandOf("made/up", "1")).toBeNull();
    expect(testCommandOf("constructor", null)).toBeNull();
  });
});

describe("images", () => {
  const plain = { imagePrefix: "", imageTemplate: null };
  test.each([
    [verified, "swebench/sweb.eval.x86_64.django_1776_django-11099:latest"],
    [gym, "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-4847"],
    [smith, "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536"],
    [
      { ...smith, image_name: "swesmith.x86_64.oauthlib__oauthlib.1fd52536" },
      "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536",
    ],
    [r2e, r2e.docker_image],
    [
      { ...verified, image: `registry.example.org:5000/a/b@sha256:${"0".repeat(64)}` },
      `registry.example.org:5000/a/b@sha256:${"0".repeat(64)}`,
    ],
  ])("%#: as the data set has it", (row, image) => {
    expect(imageOf(parse(row), plain)).toBe(image);
    expect(isImageName(image)).toBe(true);
  });

  test("of a registry of one's own", () => {
    expect(imageOf(parse(gym), { imagePrefix: "registry.example.org/swe/", imageTemplate: null })).toBe(
      "registry.example.org/swe/xingyaoww/sweb.eval.x86_64.getmoto_s_moto-4847",
    );
    expect(imageOf(parse(verified), { imagePrefix: "r.example.org/", imageTemplate: "{repo}:{id}-{version}" })).toBe(
      "r.example.org/django__django:django_1776_django-11099-3.0",
    );
  });

  test.each(["", "-x", "a b", "../x", "x;y", "a//b", "x:y:z:w", "a/B"])("%j is no name of one", (name) => {
    expect(isImageName(name)).toBe(false);
  });
});

describe("the task", () => {
  test("the model reads the problem exactly as it was reported, inside a tag it does not hold", async () => {
    const statement = "Broken </issue> & <issue>\r\n ünïcode ";
    const task = await open([{ ...verified, problem_statement: statement }]);
    const [, user] = task.messages(task.instance("train", 0));
    expect(user?.content).toContain(`<issue-2>\n${statement}\n</issue-2>`);
    expect(user?.content).not.toContain("try that");
    const told = await open([verified], { comments: true });
    expect(told.messages(told.instance("train", 0))[1]?.content).toContain("<comments>\ntry that\n</comments>");
    expect(JSON.stringify(task.messages(task.instance("train", 0)))).not.toMatch(/test_a|diff --git/);
  });

  test("tools and words are the agent's style", async () => {
    expect((await open([verified])).tools).toEqual(["bash", "str_replace_editor", "submit"]);
    const codeact = await open([verified], { agent: "codeact", tools: "bash+editor+search" });
    expect(codeact.tools).toEqual(["execute_bash", "str_replace_editor", "search", "finish"]);
    expect(codeact.messages(codeact.instance("train", 0))[1]?.content).toMatch(/call finish/);
  });

  test("its sandbox has the row's image, limits and no network, and a shell that finds the image's Python", async () => {
    const task = await open([verified, { ...verified, image: "plain:1" }], { cpus: 3, network: ["pypi.example.org"] });
    expect(task.sandboxFor?.(task.instance("train", 0))).toMatchObject({
      image: { kind: "name", name: "swebench/sweb.eval.x86_64.django_1776_django-11099:latest" },
      resources: { cpus: 3, memoryMb: 4096, pids: 512 },
      network: { mode: "allow-list", hosts: ["pypi.example.org"] },
      workdir: "/testbed",
    });
    expect(task.instance("train", 0).state).toMatchObject({
      shell: { cwd: "/testbed", startup: expect.stringContaining("conda activate testbed") },
    });
    expect(task.instance("train", 1).state).toMatchObject({
      shell: { cwd: "/testbed" },
      editor: { profile: "openhands" },
    });
    expect((await open([verified])).sandboxFor?.((await open([verified])).instance("train", 0))).toMatchObject({
      network: { mode: "none" },
    });
  });

  test("another column may hold the statement; unknown options are told those there are", async () => {
    const task = await open([{ ...verified, problem_statement: undefined, text: "Other." }], { statement: "text" });
    expect(task.messages(task.instance("train", 0))[1]?.content).toContain("<issue>\nOther.\n</issue>");
    await expect(open([verified], { tool: "bash" })).rejects.toMatchObject({
      issues: [{ path: "options.tool", message: "no such option" }],
    });
    await expect(open([verified], { imageTemplate: "{name}" })).rejects.toMatchObject({
      issues: [{ path: "options.imageTemplate" }],
    });
    await expect(swe.open({ dataset: null, options: {} })).rejects.toMatchObject({ issues: [{ path: "dataset" }] });
  });
});

test("names of files in a patch, as git writes them", () => {
  const patch = [
    "diff --git a/plain.py b/plain.py",
    "diff --git a/with blank b/x b/with blank b/x",
    'diff --git "a/\\303\\274 \\"q\\".py" "b/\\303\\274 \\"q\\".py"',
    "new file mode 100644",
    "diff --git a/old.py b/new.py",
    "diff --git a/gone.py b/gone.py",
    "deleted file mode 100644",
  ].join("\n");
  expect(patchFiles(patch)).toEqual([
    { path: "plain.py", change: "modified" },
    { path: "with blank b/x", change: "modified" },
    { path: 'ü "q".py', change: "added" },
    { path: "new.py", change: "modified" },
    { path: "gone.py", change: "deleted" },
  ]);
});
