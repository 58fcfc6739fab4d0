import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { visibleText } from "../../../design/visible-text.ts";
import { parsePatch } from "./parse-patch.ts";

const patch = (...lines: string[]) => parsePatch(`${lines.join("\n")}\n`);

describe("parsePatch", () => {
  it("numbers the lines of each side and counts what came and went", () => {
    const { files, added, removed, strayLines, cut } = patch(
      "diff --git a/src/a.py b/src/a.py",
      "index 0123456..789abcd 100644",
      "--- a/src/a.py",
      "+++ b/src/a.py",
      "@@ -10,3 +10,4 @@ def f(x):",
      " one",
      "-two",
      "+zwei",
      "+drei",
      " four",
      "@@ -100 +101 @@",
      "-old",
      "+new",
      "\\ No newline at end of file",
    );
    expect([added, removed, strayLines, cut]).toEqual([3, 2, 0, false]);
    expect(files).toMatchObject([{ oldPath: "src/a.py", newPath: "src/a.py", change: "changed", binary: false }]);
    expect(files[0]?.hunks[0]?.lines.map(({ kind, oldLine, newLine }) => [kind, oldLine, newLine])).toEqual([
      ["context", 10, 10],
      ["removed", 11, null],
      ["added", null, 11],
      ["added", null, 12],
      ["context", 12, 13],
    ]);
    expect(files[0]?.hunks[1]?.lines.at(-1)).toMatchObject({ kind: "note", text: "No newline at end of file" });
  });

  it("takes lines that look like headers for what their hunk says they are", () => {
    const { files, removed, added } = patch(
      "--- a/query.sql",
      "+++ b/query.sql",
      "@@ -1,2 +1,2 @@",
      "--- a/comment of SQL",
      "-@@ -1 +1 @@",
      "+++ b/plus",
      "+diff --git a/x b/x",
      "diff --git a/y b/y",
      "deleted file mode 100644",
      "--- a/y",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-gone",
    );
    expect([files.length, removed, added]).toEqual([2, 3, 2]);
    expect(files[0]?.hunks[0]?.lines[0]).toMatchObject({ kind: "removed", text: "-- a/comment of SQL" });
    expect(files[1]).toMatchObject({ oldPath: "y", newPath: null, change: "deleted", oldMode: "100644" });
  });

  it("knows new, moved, copied and binary files, and changed modes", () => {
    const { files } = patch(
      "diff --git a/new.txt b/new.txt",
      "new file mode 100755",
      "index 0000000..e69de29",
      "diff --git a/from here.txt b/to there.txt",
      "similarity index 100%",
      "rename from from here.txt",
      "rename to to there.txt",
      "diff --git a/run.sh b/run.sh",
      "old mode 100644",
      "new mode 100755",
      "diff --git a/x.png b/x.png",
      "index 1..2 100644",
      "GIT binary patch",
      "literal 10",
      "zcmZQzU|?VXf",
      "",
      "literal 0",
      "HcmV?d00001",
      "",
      "diff --git a/y.bin b/y.bin",
      "Binary files a/y.bin and b/y.bin differ",
      "diff --git a/c b/d",
      "copy from c",
      "copy to d",
    );
    expect(files.map(({ change, oldPath, newPath, binary }) => [change, oldPath, newPath, binary])).toEqual([
      ["added", null, "new.txt", false],
      ["renamed", "from here.txt", "to there.txt", false],
      ["changed", "run.sh", "run.sh", false],
      ["changed", "x.png", "x.png", true],
      ["changed", "y.bin", "y.bin", true],
      ["copied", "c", "d", false],
    ]);
    expect(files[2]).toMatchObject({ oldMode: "100644", newMode: "100755" });
  });

  it("reads quoted names, names with spaces, and names with times after them", () => {
    const { files } = patch(
      'diff --git "a/\\303\\244\\t\\"x\\\\.py" "b/\\303\\244\\t\\"x\\\\.py"',
      '--- "a/\\303\\244\\t\\"x\\\\.py"',
      '+++ "b/\\303\\244\\t\\"x\\\\.py"',
      "@@ -1 +1 @@",
      "-a",
      "+b",
      "--- a/with space.txt\t2026-01-01 00:00:00",
      "+++ b/with space.txt\t2026-01-01 00:00:00",
      "@@ -1 +1 @@",
      "-a",
      "+b",
    );
    expect(files.map(({ newPath }) => newPath)).toEqual(['ä\t"x\\.py', "with space.txt"]);
  });

  it("keeps carriage returns, and says when a hunk is cut short or lines belong nowhere", () => {
    const { files, cut, strayLines } = patch("From: somebody", "--- a/x", "+++ b/x", "@@ -1,5 +1,5 @@", " a\r", "-b");
    expect(files[0]?.hunks[0]?.lines[0]?.text).toBe("a\r");
    expect([cut, strayLines]).toEqual([true, 1]);
  });

  it("reads any text without fail, and no line twice", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "diff --git a/x b/x",
        "diff --git ",
        'diff --git "a/x',
        "--- a/x",
        "+++ b/x",
        "--- /dev/null",
        "@@ -1,2 +1,2 @@",
        "@@ -0,0 +1 @@",
        "@@ -999999999,999999999 +1 @@",
        "GIT binary patch",
        "literal 5",
        "+a",
        "-b",
        " c",
        "",
        "\\ x",
      ),
      fc.string({ unit: "binary", maxLength: 20 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (lines) => {
        const text = lines.join("\n");
        const read = parsePatch(text);
        const shown = read.files.flatMap((file) => file.hunks.flatMap((hunk) => hunk.lines)).length;
        expect(shown + read.strayLines).toBeLessThanOrEqual(text.split("\n").length);
        expect(read.added).toBe(read.files.reduce((sum, file) => sum + file.added, 0));
        for (const file of read.files)
          for (const hunk of file.hunks) {
            const olds = hunk.lines.flatMap((line) => line.oldLine ?? []);
            expect(olds).toEqual(olds.map((_, index) => hunk.oldStart + index));
          }
      }),
      { numRuns: 500 },
    );
  });

  it("gives back each file of a diff that was made from its parts", () => {
    const word = fc.stringMatching(/^[a-z+\- @]{0,12}$/);
    const file = fc.record({ name: fc.stringMatching(/^[a-z]{1,8}\.py$/), old: fc.array(word), now: fc.array(word) });
    fc.assert(
      fc.property(fc.array(file, { maxLength: 5 }), (made) => {
        const files = made.filter(({ old, now }) => old.length + now.length > 0);
        const text = files
          .map(({ name, old, now }) =>
            [
              `diff --git a/${name} b/${name}`,
              `--- a/${name}`,
              `+++ b/${name}`,
              `@@ -1,${old.length} +1,${now.length} @@`,
              ...old.map((line) => `-${line}`),
              ...now.map((line) => `+${line}`),
            ].join("\n"),
          )
          .join("\n");
        const read = parsePatch(text);
        expect([read.strayLines, read.cut]).toEqual([0, false]);
        expect(read.files.map((each) => [each.newPath, each.removed, each.added])).toEqual(
          files.map(({ name, old, now }) => [name, old.length, now.length]),
        );
      }),
    );
  });
});

describe("visibleText", () => {
  it("shows what a reader would not see, and leaves the rest", () => {
    expect(visibleText("a\tb é 漢 😀")).toBe("a\tb é 漢 😀");
    expect(visibleText("x\u001b[31m\u202ey\u200b\r\u0085\u007f\ufeff")).toBe(
      "x␛[31m<U+202E>y<U+200B>␍<U+0085>␡<U+FEFF>",
    );
  });
});
