/** What set-up takes away and what collecting finds, with real git in folders of this machine. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { PatchState } from "@rolldeck/contracts/patch-state";
import fc from "fast-check";
import { afterAll, describe, expect, test, vi } from "vitest";
import { localSandbox } from "../../testing/local-sandbox.ts";
import { applyPatch } from "./apply-patch.ts";
import { type BaseRow, makeBase } from "./base.ts";
import { collectPatch } from "./collect.ts";
import { copyFolder, setUpRepository } from "./set-up.ts";

// Many small git commands: slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const home = mkdtempSync(join(tmpdir(), "swe-"));
afterAll(() => {
  rmSync(copyFolder(home), { recursive: true, force: true });
  rmSync(home, { recursive: true, force: true });
});
const { signal } = new AbortController();
const timeoutMs = 60_000;

function git(folder: string, ...words: string[]): string {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    GIT_AUTHOR_DATE: "2001-01-01T00:00:00Z",
    GIT_COMMITTER_DATE: "2001-01-01T00:00:00Z",
  };
  const who = [
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@example.org",
    "-c",
    "init.defaultBranch=trunk",
    "-c",
    "protocol.file.allow=always",
  ];
  return execFileSync("git", [...who, ...words], {
    cwd: folder,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}
const write = (folder: string, path: string, content: string | Uint8Array): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
};

let made = 0;
/** A repository with a past, a beginning, and a fix that nobody may see. */
function repository(files: Record<string, string | Uint8Array> = {}): { folder: string; base: string; fix: string } {
  const folder = join(home, `repository-${made++}`);
  mkdirSync(folder);
  git(folder, "init", "-q");
  write(folder, "old.txt", "old\n");
  git(folder, "add", "-A");
  git(folder, "commit", "-qm", "past");
  git(folder, "tag", "v1");
  for (const [path, content] of Object.entries({
    "src/add.py": "def add(a, b):\n    return a - b\n",
    ".gitignore": "build/\n*.pyc\n",
    ...files,
  })) {
    write(folder, path, content);
  }
  git(folder, "add", "-A");
  git(folder, "commit", "-qm", "beginning");
  const base = git(folder, "rev-parse", "HEAD");
  write(folder, "src/add.py", "def add(a, b):\n    return a + b  # the fix\n");
  git(folder, "commit", "-qam", "the fix");
  git(folder, "tag", "-am", "later", "v2");
  const fix = git(folder, "rev-parse", "HEAD");
  git(folder, "branch", "upstream");
  return { folder, base, fix };
}
const row = (base: string | null): BaseRow => ({ kind: "swe-bench", baseCommit: base, patch: null, failToPass: [] });

async function ready(files: Record<string, string | Uint8Array> = {}, history: "past" | "none" = "past") {
  const { folder, base, fix } = repository(files);
  const fresh = join(home, `fresh-${made++}`);
  execFileSync("cp", ["-a", folder, fresh]);
  await setUpRepository(row(base), localSandbox(folder), { history, timeoutMs }, signal);
  return { folder, base, fix, fresh };
}
async function collected(folder: string): Promise<{ patch: Buffer | null; state: PatchState }> {
  const evidence = await collectPatch(localSandbox(folder), timeoutMs, signal);
  const of = (name: string) => evidence.find((it) => it.name === name)?.content;
  const patch = of(artifactNames.patch);
  const state = PatchState.parse(JSON.parse(Buffer.from(of(artifactNames.patchState) ?? []).toString()));
  return { patch: patch === undefined ? null : Buffer.from(patch), state };
}
/** Everything below a folder but git's own: names, bytes, modes and links. */
const tree = (folder: string): string =>
  execFileSync(
    "sh",
    [
      "-c",
      "find . -path ./.git -prune -o \\( -type f -o -type l \\) -printf '%P %y %m %l ' -exec sh -c 'sha256sum < \"$1\"' x {} \\; | sort",
    ],
    { cwd: folder, encoding: "utf8" },
  );
/** The patch on a fresh copy of the image gives what the agent left. */
async function fits(patch: Buffer, fresh: string, base: string): Promise<string> {
  const sandbox = localSandbox(fresh);
  await makeBase(row(base), sandbox, { forAgent: false, timeoutMs, boundary: "verifier" }, signal);
  expect(await applyPatch(sandbox, patch, timeoutMs, signal)).toMatchObject({ by: "git apply" });
  return tree(fresh);
}

describe("set-up", () => {
  test("takes later history away and keeps the past (fault 69)", async () => {
    const { folder, base, fix } = await ready();
    expect(git(folder, "rev-parse", "HEAD")).toBe(base);
    expect(git(folder, "status", "--porcelain")).toBe("");
    expect(git(folder, "log", "--all", "--reflog", "--format=%s")).toBe("beginning\npast");
    expect(git(folder, "tag")).toBe("v1");
    expect(() => git(folder, "cat-file", "-e", fix)).toThrow();
    expect(git(folder, "fsck", "--lost-found", "--no-progress")).not.toMatch(/commit/);
    expect(readFileSync(join(folder, "src/add.py"), "utf8")).toContain("a - b");
    // Nothing of the fix is in the copy either.
    expect(() => git(copyFolder(folder), "cat-file", "-e", fix)).toThrow();
  });

  test("takes remotes, stashes, notes and other work trees away", async () => {
    const { folder, base, fix } = repository();
    const elsewhere = join(home, `elsewhere-${made++}`);
    git(folder, "clone", "-q", "--bare", folder, elsewhere);
    git(folder, "remote", "add", "origin", elsewhere);
    git(folder, "fetch", "-q", "origin");
    git(folder, "notes", "add", "-m", `fixed by ${fix}`, base);
    write(folder, "src/add.py", "stashed fix\n");
    git(folder, "stash");
    await setUpRepository(row(base), localSandbox(folder), { history: "past", timeoutMs }, signal);
    expect([git(folder, "remote"), git(folder, "stash", "list"), git(folder, "for-each-ref", "refs/notes")]).toEqual([
      "",
      "",
      "",
    ]);
    expect(git(folder, "log", "--all", "--reflog", "--format=%s")).toBe("beginning\npast");
  });

  test("leaves one commit where no history is wanted", async () => {
    const { folder } = await ready({}, "none");
    expect(git(folder, "log", "--all", "--format=%s")).toBe("base");
    expect(git(folder, "status", "--porcelain")).toBe("");
  });

  test("keeps a commit that an image put on top, and what lies beside commits", async () => {
    const { folder, base } = repository();
    git(folder, "reset", "-q", "--hard", base);
    write(folder, "tox.ini", "changed by the image\n");
    git(folder, "add", "-A");
    git(folder, "commit", "-qm", "SWE-bench");
    write(folder, "left.txt", "beside\n");
    await setUpRepository(row(base), localSandbox(folder), { history: "past", timeoutMs }, signal);
    expect(readFileSync(join(folder, "tox.ini"), "utf8")).toBe("changed by the image\n");
    expect(git(folder, "status", "--porcelain")).toBe("");
    expect((await collected(folder)).state).toMatchObject({ state: "collected", bytes: 0 });
  });

  test.each([
    ["no folder", () => join(home, "nowhere"), /there is no folder/],
    ["no repository", () => home, /there is no git repository/],
    ["no such commit", () => repository().folder, /has no commit 0123456/],
  ])("%s: says what was seen", async (_, folder, message) => {
    const setUp = setUpRepository(row("0123456"), localSandbox(folder()), { history: "past", timeoutMs }, signal);
    await expect(setUp).rejects.toThrow(message);
    await expect(setUp).rejects.toMatchObject({ boundary: "sandbox", code: "repository_failed" });
  });

  test("SWE-smith: the row's patch makes the bug, the tests that show it are gone, and the right code is not in the past", async () => {
    const { folder, base } = repository({ "tests/test_add.py": "def test_add(): pass\n" });
    git(folder, "reset", "-q", "--hard", base);
    const patch =
      "diff --git a/src/add.py b/src/add.py\n--- a/src/add.py\n+++ b/src/add.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a * b\n";
    const smith: BaseRow = { kind: "swe-smith", baseCommit: null, patch, failToPass: ["tests/test_add.py::test_add"] };
    await setUpRepository(smith, localSandbox(folder), { history: "past", timeoutMs }, signal);
    expect(readFileSync(join(folder, "src/add.py"), "utf8")).toContain("a * b");
    expect(existsSync(join(folder, "tests/test_add.py"))).toBe(false);
    expect(git(folder, "log", "--all", "-p", "--format=%s")).not.toMatch(/a - b|def test_add/);
  });
});

describe("collecting", () => {
  test("finds edits, new, binary and deleted files, modes and links, and fits a fresh copy byte for byte", async () => {
    const { folder, fresh, base } = await ready({ "data.bin": Buffer.from([0, 1, 2, 255]), "run.sh": "#!/bin/sh\n" });
    write(folder, "src/add.py", "def add(a, b):\n    return a + b\n\n ");
    write(folder, "data.bin", Buffer.from([0, 255, 10, 13, 0, 1]));
    write(folder, "new file with blanks é.txt", "no line end");
    write(folder, "empty", "");
    write(folder, "sub/new.bin", Buffer.from([0, 0, 0]));
    chmodSync(join(folder, "run.sh"), 0o755);
    unlinkSync(join(folder, "old.txt"));
    symlinkSync("src/add.py", join(folder, "link"));
    const { patch, state } = await collected(folder);
    expect(state).toMatchObject({ state: "collected", bytes: patch?.length });
    expect(await fits(patch ?? Buffer.alloc(0), fresh, base)).toBe(tree(folder));
  });

  test("a patch keeps its last line, be it an empty one of the context or one without a line end (fault 65)", async () => {
    const { folder, fresh, base } = await ready({ "a.py": "one\n\n", "b.py": "def f():\n    return 0" });
    write(folder, "a.py", "1\n\n");
    write(folder, "b.py", "def f():\n    return 1");
    const { patch } = await collected(folder);
    const text = patch?.toString() ?? "";
    expect(text).toContain("-one\n+1\n \n");
    expect(text.endsWith("+    return 1\n\\ No newline at end of file\n")).toBe(true);
    expect(await fits(patch ?? Buffer.alloc(0), fresh, base)).toBe(tree(folder));
  });

  test("any bytes come back as they were (fault 65)", async () => {
    const { folder, fresh, base } = await ready();
    const lines = fc.array(
      fc.constantFrom("a", "", " ", "\t", "b ", "\r", "é", "\u0000", "--- a/x", "+++ b/x", "@@ -1 +1 @@"),
      { maxLength: 8 },
    );
    const text = fc
      .tuple(lines, fc.constantFrom("\n", "\r\n"), fc.boolean())
      .map(([it, end, last]) => it.join(end) + (last ? end : ""));
    await fc.assert(
      fc.asyncProperty(text, text, async (first, second) => {
        write(folder, "src/add.py", first);
        write(folder, "other.txt", second);
        const copy = join(home, `copy-${made++}`);
        execFileSync("cp", ["-a", fresh, copy]);
        const { patch } = await collected(folder);
        expect(await fits(patch ?? Buffer.alloc(0), copy, base)).toBe(tree(folder));
      }),
      { numRuns: 6 },
    );
  });

  test("no change is an empty patch", async () => {
    const { folder } = await ready();
    const { patch, state } = await collected(folder);
    expect([patch?.length, state.state]).toEqual([0, "collected"]);
  });

  test("commits, settings, hooks, attributes and a repository made anew change nothing", async () => {
    const plain = await ready();
    write(plain.folder, "src/add.py", "def add(a, b):\n    return a + b\n");
    write(plain.folder, "notes.txt", "text\r\nwith ends\r\n");
    write(plain.folder, ".gitattributes", "* text eol=lf filter=shout ident\n*.py -diff\n");
    const expected = (await collected(plain.folder)).patch;
    const vandal = async (act: (folder: string) => void): Promise<void> => {
      const { folder } = await ready();
      write(folder, "src/add.py", "def add(a, b):\n    return a + b\n");
      write(folder, "notes.txt", "text\r\nwith ends\r\n");
      write(folder, ".gitattributes", "* text eol=lf filter=shout ident\n*.py -diff\n");
      act(folder);
      expect((await collected(folder)).patch?.toString()).toBe(expected?.toString());
    };
    await vandal((folder) => {
      git(folder, "add", "-A");
      git(folder, "commit", "-qm", "done");
    });
    await vandal((folder) => {
      for (const setting of [
        "diff.noprefix true",
        "diff.mnemonicPrefix true",
        "core.autocrlf true",
        "diff.external false",
        "core.fsmonitor false",
        "filter.shout.clean false",
        "core.excludesFile /dev/stdin",
        "color.ui always",
        "diff.renames copies",
        "core.fileMode false",
      ]) {
        git(folder, "config", ...setting.split(" "));
      }
      write(folder, ".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
      write(folder, ".git/info/exclude", "*\n");
    });
    await vandal((folder) => {
      rmSync(join(folder, ".git"), { recursive: true });
    });
    await vandal((folder) => {
      rmSync(join(folder, ".git"), { recursive: true });
      git(folder, "init", "-q");
      git(folder, "add", "-A");
      git(folder, "commit", "-qm", "mine");
    });
  });

  test("what was ignored before stays out, whatever .gitignore says now; repositories inside are left out", async () => {
    const { folder, base } = repository();
    git(folder, "checkout", "-q", base);
    write(folder, "build/out.txt", "built before\n");
    write(folder, "src/add.pyc", "compiled before\n");
    await setUpRepository(row(base), localSandbox(folder), { history: "past", timeoutMs }, signal);
    write(folder, ".gitignore", "\n");
    write(folder, "src/late.pyc", "compiled later\n");
    mkdirSync(join(folder, "inner"));
    git(join(folder, "inner"), "init", "-q");
    write(folder, "inner/x.txt", "x\n");
    git(join(folder, "inner"), "add", "-A");
    git(join(folder, "inner"), "commit", "-qm", "x");
    const patch = (await collected(folder)).patch?.toString() ?? "";
    expect([...patch.matchAll(/^diff --git a\/(\S+)/gmu)].map(([, name]) => name)).toEqual([
      ".gitignore",
      "src/late.pyc",
    ]);
  });

  test("a patch that is too large is told with its size, never cut, and kept packed for people", async () => {
    const { folder } = await ready();
    write(folder, "big.txt", "0123456789abcdef\n".repeat(700_000));
    const { patch, state } = await collected(folder);
    expect(patch).toBeNull();
    expect(state.state).toBe("too_large");
    expect(state.bytes).toBeGreaterThan(10 * 1024 * 1024);
    const evidence = await collectPatch(localSandbox(folder), timeoutMs, signal);
    const whole = evidence.find(({ name }) => name === artifactNames.wholePatch)?.content ?? new Uint8Array();
    expect(gunzipSync(whole).length).toBe(state.bytes);
  });

  test("an agent that removed the beginning is told apart from one that changed nothing", async () => {
    const { folder } = await ready();
    rmSync(copyFolder(folder), { recursive: true });
    expect((await collected(folder)).state.state).toBe("no_base");
  });
});
