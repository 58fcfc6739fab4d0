/**
 * The set's builder on a source package made here, in real Docker: what it writes, that it tells a task that does not hold, and that
 * a second build gives the same commit and image.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { testDocker } from "@rolldeck/sandbox/testing/test-docker";
import { runTool } from "@rolldeck/tasks/offline-set/run-tool";
import { readSetList } from "@rolldeck/tasks/offline-set/set-list";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BuildReport, buildSet } from "./build-set.ts";
import { DockerImages } from "./docker-images.ts";

const docker = testDocker();
const { signal } = new AbortController();
const gradeScript = readFileSync(resolve(import.meta.dirname, "../../../../infra/swe-set/grade.py"), "utf8");

const buggy = "def half(x):\n    return x // 2\n";
const sources = {
  "half.py": buggy,
  "tests/test_half.py": "from half import half\n\n\ndef test_even():\n    assert half(4) == 2\n",
  "conftest.py": "",
  "ignored.log": "part of the package\n",
  ".gitignore": "*.log\n",
};
const packaging = {
  "debian/control":
    "Source: half\nMaintainer: Nobody <nobody@localhost>\n\nPackage: half\nArchitecture: all\nDescription: halves\n halves\n",
  "debian/changelog":
    "half (1.0-1) unstable; urgency=low\n\n  * First.\n\n -- Nobody <nobody@localhost>  Sat, 01 Jan 2000 00:00:00 +0000\n",
  "debian/source/format": "3.0 (quilt)\n",
  "debian/patches/series": "0001-docs.patch # before the fix\n0002-odd-numbers.patch\n0003-no-difference.patch\n",
  "debian/patches/0001-docs.patch": "--- /dev/null\n+++ b/README\n@@ -0,0 +1 @@\n+Halves.\n",
  "debian/patches/0002-odd-numbers.patch": [
    "Subject: odd numbers",
    "",
    "--- a/half.py",
    "+++ b/half.py",
    "@@ -1,2 +1,2 @@",
    " def half(x):",
    "-    return x // 2",
    "+    return x / 2",
    "--- a/tests/test_half.py",
    "+++ b/tests/test_half.py",
    "@@ -3,3 +3,7 @@",
    " ",
    " def test_even():",
    "     assert half(4) == 2",
    "+",
    "+",
    "+def test_odd():",
    "+    assert half(3) == 1.5",
    "",
  ].join("\n"),
  "debian/patches/0003-no-difference.patch": [
    "--- a/half.py",
    "+++ b/half.py",
    "@@ -1,2 +1,3 @@",
    "+# halves",
    " def half(x):",
    "     return x / 2",
    "--- a/tests/test_half.py",
    "+++ b/tests/test_half.py",
    "@@ -6,4 +6,5 @@",
    " ",
    " ",
    " def test_odd():",
    "+    assert half(1) == 0.5",
    "     assert half(3) == 1.5",
    "",
  ].join("\n"),
};

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

const report = "Half of an odd number is wrong: half(3) gives 1, and 1.5 is what I expect.";
const entry = (id: string, fix: string) => ({
  id,
  source: { debian: "half", version: "1.0-1", fix },
  test: "python3 -m pytest -rA -q tests",
  report,
});

describe.skipIf(docker === null)("rolldeck task build", () => {
  let home: string;
  let runtimes: SandboxRuntimes;
  let built: BuildReport;
  const images = new Set<string>();
  const build = async (entries: readonly ReturnType<typeof entry>[], out: string) => {
    const done = await buildSet(readSetList(JSON.stringify(entries)), {
      out: join(home, out),
      cache: join(home, "cache"),
      debianSources: home,
      images: new DockerImages(docker?.socket ?? ""),
      runtime: runtimes.get("docker"),
      base: docker?.image ?? "",
      gradeScript,
      runs: 2,
      say: () => undefined,
      signal,
    });
    for (const { image } of done.built) images.add(image);
    return done;
  };

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "rolldeck-build-"));
    write(join(home, "half-1.0"), sources);
    await runTool("tar", ["-czf", "half_1.0.orig.tar.gz", "half-1.0"], { cwd: home, signal });
    write(join(home, "half-1.0"), packaging);
    await runTool("dpkg-source", ["-b", "half-1.0"], { cwd: home, signal });
    const settings = parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: docker?.socket }, home);
    const scene = { settings, deployment: `test-build-${process.pid}`, stateFolder: home, onTrouble: () => undefined };
    runtimes = new SandboxRuntimes(scene);
    const entries = [
      entry("half-odd", "0002-odd-numbers"),
      entry("half-same", "0003-no-difference"),
      entry("half-gone", "0009"),
    ];
    built = await build(entries, "out");
  });
  afterAll(async () => {
    const daemon = new Docker({ socketPath: docker?.socket ?? "" });
    for (const image of images) await daemon.getImage(image).remove({ force: true });
    await runtimes?.disconnect();
    rmSync(home, { recursive: true, force: true });
  });

  test("writes the task that holds, and tells why another does not", () => {
    expect(built.built).toMatchObject([{ id: "half-odd", failToPass: 1, passToPass: 1, dropped: 0 }]);
    expect(built.failed.map(({ id, reason }) => [id, reason.slice(0, 60)])).toEqual([
      ["half-same", expect.stringContaining("no test fails before the fix and passes after it")],
      ["half-gone", expect.stringContaining("half 1.0-1 has no patch 0009")],
    ]);
    expect(readdirSync(join(home, "out/harbor"))).toEqual(["half-odd"]);
  });

  test("the row has everything a grader asks for, and its patches are upstream's", () => {
    const lines = readFileSync(join(home, "out/evaluate.jsonl"), "utf8").trim().split("\n");
    expect(lines).toHaveLength(1);
    const row = JSON.parse(lines[0] ?? "");
    expect(row).toMatchObject({
      repo: "debian/half",
      instance_id: "half-odd",
      problem_statement: report,
      FAIL_TO_PASS: ["tests/test_half.py::test_odd"],
      PASS_TO_PASS: ["tests/test_half.py::test_even"],
      log_parser: "parse_log_pytest",
      image: built.built[0]?.image,
    });
    expect(row.patch).toContain("+    return x / 2");
    expect(row.patch).not.toContain("tests/");
    expect(row.test_patch).toContain("+def test_odd():");
    expect(row.test_patch).not.toContain("half.py b/half.py");
  });

  test("the repository in the Harbor directory is one commit of the tree before the fix, ignored files and earlier patches with it", async () => {
    const folder = join(home, "unpacked");
    mkdirSync(folder);
    const archive = join(home, "out/harbor/half-odd/environment/repository.tar");
    await runTool("tar", ["-xf", archive, "-C", folder, "--no-same-owner"], { cwd: folder, signal });
    const git = async (...args: string[]) => (await runTool("git", args, { cwd: folder, signal })).toString().trim();
    expect(await git("rev-list", "--all")).toBe(built.built[0]?.baseCommit);
    expect((await git("ls-files")).split("\n").sort()).toEqual([...Object.keys(sources), "README"].sort());
    expect(await git("status", "--porcelain")).toBe("");
    expect(readFileSync(join(folder, "half.py"), "utf8")).toBe(buggy);
    expect(await git("fsck", "--unreachable", "--no-reflogs")).toBe("");
  });

  test("a second build gives the same commit and image; a row whose task fails this time stays", async () => {
    const again = await build([entry("half-odd", "0002-odd-numbers.patch")], "out");
    const [first] = again.built;
    expect([first?.baseCommit, first?.image]).toEqual([built.built[0]?.baseCommit, built.built[0]?.image]);
    expect((await build([entry("half-odd", "0009")], "out")).failed).toHaveLength(1);
    const rows = readFileSync(join(home, "out/evaluate.jsonl"), "utf8").trim().split("\n");
    expect(rows.map((line) => JSON.parse(line).instance_id)).toEqual(["half-odd"]);
  });

  test("a daemon that is not there is told, not taken for a missing image", async () => {
    const nowhere = new DockerImages(join(home, "nothing.sock"));
    await expect(nowhere.idOf("anything:at-all")).rejects.toThrow(BoundaryError);
    expect(await new DockerImages(docker?.socket ?? "").idOf("rolldeck-swe/nothing:here")).toBeNull();
  });
});
