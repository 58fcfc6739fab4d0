import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { SourceRepository } from "./repository.ts";
import { runTool } from "./run-tool.ts";

const home = mkdtempSync(join(tmpdir(), "rolldeck-offline-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const { signal } = new AbortController();

function tree(name: string): string {
  const folder = mkdtempSync(join(home, `${name}-`));
  writeFileSync(join(folder, "a.py"), "x = 1\n");
  writeFileSync(join(folder, "test_a.py"), "assert True\n");
  writeFileSync(join(folder, ".gitignore"), "*.txt\n");
  writeFileSync(join(folder, "kept.txt"), "part of the package\n");
  return folder;
}

test("equal trees give the equal commit, whatever the machine's own settings say", async () => {
  const first = await SourceRepository.commit(tree("one"), signal);
  const second = await SourceRepository.commit(tree("two"), signal);
  expect(first.baseCommit).toMatch(/^[0-9a-f]{40}$/);
  expect(second.baseCommit).toBe(first.baseCommit);
  expect(await first.has("kept.txt")).toBe(true);
});

test("patches hold changed, new and binary files, and apply to the commit", async () => {
  const folder = tree("patch");
  const repository = await SourceRepository.commit(folder, signal);
  writeFileSync(join(folder, "a.py"), "x = 2 \r\n");
  writeFileSync(join(folder, "new.bin"), Buffer.from([0, 1, 2, 255]));
  expect(await repository.changedFiles()).toEqual(["a.py", "new.bin"]);
  const patch = await repository.patchOf(["a.py", "new.bin"]);
  await repository.restore();
  expect(readdirSync(folder)).not.toContain("new.bin");
  await runTool("git", ["apply", "-"], { cwd: folder, signal, stdin: patch });
  expect(readFileSync(join(folder, "a.py"), "utf8")).toBe("x = 2 \r\n");
  expect(readFileSync(join(folder, "new.bin"))).toEqual(Buffer.from([0, 1, 2, 255]));
});

test("what Python leaves behind is no change, although the package has no list of its own for it", async () => {
  const folder = tree("ignored");
  await SourceRepository.commit(folder, signal);
  mkdirSync(join(folder, "__pycache__"));
  writeFileSync(join(folder, "__pycache__/a.cpython-311.pyc"), "x");
  writeFileSync(join(folder, "new.py"), "");
  const status = await runTool("git", ["status", "--porcelain"], { cwd: folder, signal });
  expect(status.toString()).toBe("?? new.py\n");
});

test("after restoring, nothing of the fix is left: no file, no object, no log", async () => {
  const folder = tree("restore");
  const repository = await SourceRepository.commit(folder, signal);
  const secret = "the_fix_of_the_bug = 42\n";
  writeFileSync(join(folder, "a.py"), secret);
  await repository.changedFiles();
  const hash = (await runTool("git", ["hash-object", "a.py"], { cwd: folder, signal })).toString().trim();
  await runTool("git", ["cat-file", "-e", hash], { cwd: folder, signal });
  await repository.restore();
  expect(readFileSync(join(folder, "a.py"), "utf8")).toBe("x = 1\n");
  await expect(runTool("git", ["cat-file", "-e", hash], { cwd: folder, signal })).rejects.toThrow(/cat-file/);
  const log = await runTool("git", ["log", "--all", "--oneline", "--walk-reflogs"], { cwd: folder, signal });
  expect(log.toString().trim()).toBe("");
  const status = await runTool("git", ["status", "--porcelain"], { cwd: folder, signal });
  expect(status.toString()).toBe("");
});
