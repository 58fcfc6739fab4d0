/** The editor over real files and a real shell: what it writes, byte for byte, and what it says, word for word. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { localSandbox } from "../../testing/local-sandbox.ts";
import { strReplaceEditor } from "./str-replace-editor.ts";

let folder: string;
let sandbox: Sandbox;
let names = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rolldeck-editor-test-"));
  sandbox = localSandbox(folder, { TMPDIR: folder });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Args = JsonObject & { command: string; path: string };
const agent = { turn: 0, maxTurns: 1, contextTokens: 0, maxContextTokens: 1, calls: [] };
const call = (args: Args, profile = "openhands", where = sandbox) =>
  strReplaceEditor.call(args, {
    instance: { editor: { profile } },
    agent,
    sandbox: where,
    signal: new AbortController().signal,
    deadlineMs: 0,
  });
const say = async (args: Args, profile?: string): Promise<string> => (await call(args, profile)).output;
const file = (content: string | Uint8Array, name = `f${names++}.py`): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const bytesOf = (path: string): string => readFileSync(path).toString("latin1");

describe("openhands texts", () => {
  it("view a file with numbers, a range and a range past the end", async () => {
    const path = file("a\n\tb\nc\n");
    expect(await say({ command: "view", path })).toBe(
      `Here's the result of running \`cat -n\` on ${path}:\n     1\ta\n     2\t\tb\n     3\tc\n     4\t\n`,
    );
    expect(await say({ command: "view", path, view_range: [2, 9] })).toBe(
      `Here's the result of running \`cat -n\` on ${path}:\n     2\t\tb\n     3\tc\n` +
        "\nNOTE: We only show up to 3 since there's only 3 lines in this file\n",
    );
    expect(await say({ command: "view", path, view_range: [3, -1] })).toMatch(/:\n {5}3\tc\n$/);
    expect(await say({ command: "view", path, view_range: [4, 5] })).toBe(
      "ERROR:\nInvalid `view_range` parameter: [4, 5]. " +
        "Its first element `4` should be within the range of lines of the file: [1, 3].",
    );
    expect(await say({ command: "view", path, view_range: [3, 2] })).toBe(
      "ERROR:\nInvalid `view_range` parameter: [3, 2]. " +
        "Its second element `2` should be greater than or equal to the first element `3`.",
    );
    expect(await say({ command: "view", path, view_range: [3] })).toBe(
      "ERROR:\nInvalid `view_range` parameter: [3]. It should be a list of two integers.",
    );
  });
  it("show a folder two levels deep without what is hidden", async () => {
    const path = join(folder, "tree");
    mkdirSync(join(path, "src/deep/deeper"), { recursive: true });
    mkdirSync(join(path, ".git/refs"), { recursive: true });
    for (const name of ["b.py", "src/a.py", "src/.hidden", "src/deep/x.py", ".env"])
      writeFileSync(join(path, name), "");
    expect(await say({ command: "view", path })).toBe(
      `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:\n` +
        `${path}/\n${path}/b.py\n${path}/src/\n${path}/src/a.py\n${path}/src/deep/\n` +
        `\n2 hidden files/directories in this directory are excluded. You can use 'ls -la ${path}' to see them.`,
    );
    expect(await say({ command: "view", path, view_range: [1, 2] })).toMatch(/^ERROR:\nInvalid `view_range` parameter/);
    expect(await say({ command: "insert", path, insert_line: 0, new_str: "x" })).toBe(
      `ERROR:\nInvalid \`path\` parameter: ${path}. The path ${path} is a directory and only the \`view\` command can be ` +
        "used on directories.",
    );
  });
  it("create once, and say what is missing", async () => {
    const path = join(folder, "made.py");
    expect(await say({ command: "create", path, file_text: "x = 1\n" })).toBe(`File created successfully at: ${path}`);
    expect(await say({ command: "create", path, file_text: "" })).toBe(
      `ERROR:\nInvalid \`path\` parameter: ${path}. File already exists at: ${path}. ` +
        "Cannot overwrite files using command `create`.",
    );
    expect(await say({ command: "create", path: `${path}x` })).toBe(
      "ERROR:\nParameter `file_text` is required for command: create.",
    );
    const lost = join(folder, "no/such/a.py");
    expect(await say({ command: "create", path: lost, file_text: "" })).toBe(
      `ERROR:\nRan into [Errno 2] No such file or directory: '${lost}' while trying to write to ${lost}`,
    );
    const below = join(path, "a.py");
    expect(await say({ command: "create", path: below, file_text: "" })).toBe(
      `ERROR:\nRan into [Errno 20] Not a directory: '${below}' while trying to write to ${below}`,
    );
    expect(await say({ command: "view", path: lost })).toBe(
      `ERROR:\nInvalid \`path\` parameter: ${lost}. The path ${lost} does not exist. Please provide a valid path.`,
    );
    expect(await say({ command: "view", path: "made.py" })).toBe(
      "ERROR:\nInvalid `path` parameter: made.py. The path should be an absolute path, starting with `/`. " +
        `Maybe you meant ${path}?`,
    );
    expect(await say({ command: "view", path: "none.py" })).toMatch(/starting with `\/`\.$/);
    expect(await say({ command: "rename", path })).toBe(
      "ERROR:\nUnrecognized command rename. The allowed commands for the str_replace_editor tool are: " +
        "view, create, str_replace, insert, undo_edit",
    );
  });
  it("replace exactly one place", async () => {
    const path = file(`${Array.from({ length: 12 }, (_, i) => `line ${i + 1}`).join("\n")}\nx\nx\n`);
    expect(await say({ command: "str_replace", path, old_str: "line 6\n", new_str: "six\nseven\n" })).toBe(
      `The file ${path} has been edited. Here's the result of running \`cat -n\` on a snippet of ${path}:\n` +
        "     3\tline 3\n     4\tline 4\n     5\tline 5\n     6\tsix\n     7\tseven\n     8\tline 7\n     9\tline 8\n" +
        "    10\tline 9\n    11\tline 10\n    12\tline 11\n    13\t\n" +
        "Review the changes and make sure they are as expected. Edit the file again if necessary.",
    );
    expect(await say({ command: "str_replace", path, old_str: "x" })).toBe(
      "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `x` in lines [6, 14, 15]. " +
        "Please ensure it is unique.",
    );
    expect(await say({ command: "str_replace", path, old_str: "  gone  ", new_str: "y" })).toBe(
      `ERROR:\nNo replacement was performed, old_str \`gone\` did not appear verbatim in ${path}.`,
    );
    expect(await say({ command: "str_replace", path, old_str: "six", new_str: "six" })).toBe(
      "ERROR:\nInvalid `new_str` parameter: six. No replacement was performed. " +
        "`new_str` and `old_str` must be different.",
    );
    await say({ command: "str_replace", path, old_str: "  six ", new_str: " 6 " });
    expect(bytesOf(path)).toContain("line 5\n6\nseven\n");
    await say({ command: "str_replace", path, old_str: "seven\n" });
    expect(bytesOf(path)).toContain("line 5\n6\nline 7\n");
  });
  it("insert behind a line, also behind a last one without an end", async () => {
    const path = file("a\nb");
    expect(await say({ command: "insert", path, insert_line: 3, new_str: "c" })).toBe(
      "ERROR:\nInvalid `insert_line` parameter: 3. It should be within the range of allowed values: [0, 2]",
    );
    expect(await say({ command: "insert", path, insert_line: 2, new_str: "c" })).toContain("     3\tc");
    expect(bytesOf(path)).toBe("a\nb\nc");
    await say({ command: "insert", path, insert_line: 0, new_str: "0\n0" });
    expect(bytesOf(path)).toBe("0\n0\na\nb\nc");
    expect(await say({ command: "insert", path, insert_line: 0 })).toBe(
      "ERROR:\nParameter `new_str` is required for command: insert.",
    );
  });
  it("undo up to ten edits, then say that there are none", async () => {
    const path = file("0\n");
    for (let i = 0; i < 12; i++) await say({ command: "str_replace", path, old_str: `${i}`, new_str: `${i + 1}` });
    for (let i = 11; i >= 2; i--) {
      expect(await say({ command: "undo_edit", path })).toBe(
        `Last edit to ${path} undone successfully. ` +
          `Here's the result of running \`cat -n\` on ${path}:\n     1\t${i}\n     2\t\n`,
      );
    }
    expect(await say({ command: "undo_edit", path })).toBe(`ERROR:\nNo edit history found for ${path}.`);
    expect(bytesOf(path)).toBe("2\n");
  });
  it("refuse binaries, special files and what is too large, and cut what is long", async () => {
    const binary = file(Buffer.from("PK\0\x01"));
    expect(await say({ command: "view", path: binary })).toBe(
      `ERROR:\nFile validation failed for ${binary}: ` +
        "File appears to be binary and this file type cannot be read or edited by this tool.",
    );
    expect(await say({ command: "view", path: "/dev/zero" })).toMatch(/appears to be binary/);
    const large = file(Buffer.alloc(11 * 1024 * 1024, "a"));
    expect(await say({ command: "view", path: large })).toBe(
      `ERROR:\nFile validation failed for ${large}: File is too large (11.0MB). Maximum allowed size is 10MB.`,
    );
    const long = await say({ command: "view", path: file("x".repeat(20_000)) });
    expect(long).toMatch(/x<response clipped><NOTE>Due to the max output limit, only part of this file has been shown/);
    expect(long.length).toBeLessThan(16_500);
  });
  it("say it when the file may not be written, and change nothing", async () => {
    const path = file("a\n");
    chmodSync(path, 0o444);
    // Root may write everything: the shell's answer is then made.
    const strict: Sandbox = {
      ...sandbox,
      exec: async (request, signal) => {
        const result = await sandbox.exec(request, signal);
        const head = Buffer.from(
          Buffer.from(result.stdout.head)
            .toString()
            .replace(/^(file\n\d+\n)w/, "$1-"),
        );
        return { ...result, stdout: { ...result.stdout, head } };
      },
    };
    const { output, error } = await call(
      { command: "str_replace", path, old_str: "a", new_str: "b" },
      "openhands",
      strict,
    );
    expect(output).toBe(`ERROR:\nRan into [Errno 13] Permission denied: '${path}' while trying to write to ${path}`);
    expect(error?.code).toBe("edit_refused");
    expect(bytesOf(path)).toBe("a\n");
    expect(await say({ command: "undo_edit", path })).toContain("No edit history");
  });
});

describe("skyrl texts", () => {
  const skyrl = (args: Args) => say(args, "skyrl");
  it("speak as its script does", async () => {
    const path = join(folder, "s.py");
    expect(await skyrl({ command: "create", path: "s.py", file_text: "def f():\n    return 1" })).toBe(
      `File created at ${path}. Here's the result of running \`cat -n\` on ${path}:\n` +
        "     1\tdef f():\n     2\t    return 1\n" +
        "Review the file and make sure that it is as expected. Edit the file if necessary.",
    );
    expect(await skyrl({ command: "create", path, file_text: "" })).toBe(
      `ERROR: File already exists at: ${path}. Cannot overwrite with 'create'.`,
    );
    expect(await skyrl({ command: "view", path })).toBe(
      `Here's the result of running \`cat -n\` on the file: ${path}:\n     1 def f():\n     2     return 1`,
    );
    expect(await skyrl({ command: "view", path, view_range: [1, 3] })).toBe(
      "ERROR: Invalid view_range [1, 3]: end must be >= start and <= 2, or -1 to view until end.",
    );
    expect(await skyrl({ command: "str_replace", path, old_str: "    return 2", new_str: "" })).toBe(
      `ERROR: No occurrences of '    return 2' found in ${path} for replacement.\n` +
        "Possible similar lines:\n-     return 1",
    );
    expect(await skyrl({ command: "str_replace", path, old_str: "r", new_str: "" })).toBe(
      "ERROR: Multiple occurrences of 'r' found in lines [2, 2]. Please ensure it is unique before using str_replace.",
    );
    expect(await skyrl({ command: "insert", path, insert_line: 4, new_str: "" })).toBe(
      "ERROR: Invalid insert_line 4. Must be in [0, 2].",
    );
    expect(await skyrl({ command: "view", path: file("x", "n.txt") })).toBe(
      "ERROR: ERROR: Viewing non-Python files is disallowed for saving context. File 'n.txt' is not a .py file.",
    );
    expect(await skyrl({ command: "view", path: join(folder, "no.py") })).toBe(
      `ERROR: The path '${join(folder, "no.py")}' does not exist.`,
    );
    const long = file(
      `class A:\n    """One.\n\n    Two.\n    Three.\n    """\n    def f(self):\n        a = 1\n        b = 2\n        c = 3\n        return a\n\n` +
        `    def g(self):\n        pass\n${"x = 1\n".repeat(120)}`,
    );
    expect((await skyrl({ command: "view", path: long })).split("\n").slice(0, 10)).toEqual([
      `Here is a condensed view for file: ${long}; [Note: Useful for understanding file structure in a concise manner. ` +
        "Please use specific view_range without concise cmd if you want to explore further into the relevant parts.]",
      "     1 class A:",
      '     2     """One.',
      "     3 ... eliding lines 3-5 ...",
      '     6     """',
      "     7     def f(self):",
      "     8 ... eliding lines 8-11 ...",
      "    12 ",
      "    13     def g(self):",
      "    14         pass",
    ]);
    expect(await skyrl({ command: "view", path: long, view_range: [8, 9] })).toMatch(/ {5}8 {9}a = 1\n {5}9 {9}b = 2$/);
    expect(await skyrl({ command: "undo_edit", path })).toMatch(/undone successfully/);
    expect(bytesOf(path)).toBe("");
    expect(await skyrl({ command: "undo_edit", path })).toBe(`ERROR: No previous edits found for ${path} to undo.`);
  });
});

describe("bytes", () => {
  it("keep encodings, marks, line ends, tabs and the mode", async () => {
    const cases: [before: Uint8Array, after: Uint8Array][] = [
      [Buffer.from("\ufeffold\n\tb\r\nold2"), Buffer.from("\ufeffnew\n\tb\r\nold2")],
      [Buffer.from("caf\xe9 old\r\n", "latin1"), Buffer.from("caf\xe9 new\r\n", "latin1")],
      [Buffer.from("\ufeffold \u00e9\r\n", "utf16le"), Buffer.from("\ufeffnew \u00e9\r\n", "utf16le")],
      [Buffer.from("\ufeffold\n", "utf16le").swap16(), Buffer.from("\ufeffnew\n", "utf16le").swap16()],
    ];
    for (const [before, after] of cases) {
      const path = file(before);
      chmodSync(path, 0o755);
      await say({
        command: "str_replace",
        path,
        old_str: Buffer.from(before).includes("old2") ? "old\n" : "old",
        new_str: Buffer.from(before).includes("old2") ? "new\n" : "new",
      });
      expect(bytesOf(path)).toBe(Buffer.from(after).toString("latin1"));
      expect(statSync(path).mode & 0o777).toBe(0o755);
    }
  });
  it("write a CRLF file's new lines as its old ones, matched by text with plain ends", async () => {
    const path = file("a\r\nb\r\nc\n");
    await say({ command: "str_replace", path, old_str: "a\nb\n", new_str: "a\nx\ny\n" });
    expect(bytesOf(path)).toBe("a\r\nx\r\ny\r\nc\n");
    await say({ command: "insert", path, insert_line: 1, new_str: "q" });
    expect(bytesOf(path)).toBe("a\r\nq\r\nx\r\ny\r\nc\n");
  });
  it("follow a link to its file, which stays a link", async () => {
    const path = file("old\n");
    const link = join(folder, "link.py");
    symlinkSync(path, link);
    await say({ command: "str_replace", path: link, old_str: "old", new_str: "new" });
    expect(bytesOf(path)).toBe("new\n");
    await say({ command: "undo_edit", path });
    expect(bytesOf(link)).toBe("old\n");
  });
  it("refuse a character that the file's encoding lacks", async () => {
    const path = file(Buffer.from("caf\xe9\n", "latin1"));
    expect(await say({ command: "str_replace", path, old_str: "caf", new_str: "☃" })).toMatch(/can't encode/);
    expect(bytesOf(path)).toBe("caf\xe9\n");
  });
  it("refuse half of a surrogate pair, in a new file, in a path and in every encoding", async () => {
    for (const profile of ["openhands", "skyrl"]) {
      const path = join(folder, `half${names++}.py`);
      expect(await say({ command: "create", path, file_text: "x = '\ud800'\n" }, profile)).toMatch(/can't encode/);
      expect(existsSync(path)).toBe(false);
    }
    expect(await say({ command: "create", path: join(folder, "half\udc00"), file_text: "x\n" })).toMatch(/^ERROR/);
    expect(existsSync(join(folder, "half\ufffd"))).toBe(false);
    for (const content of [Buffer.from("old\n"), Buffer.from("\ufeffold\n", "utf16le")]) {
      const path = file(content);
      const before = bytesOf(path);
      expect(await say({ command: "str_replace", path, old_str: "old", new_str: "\ud800" })).toMatch(/can't encode/);
      expect(bytesOf(path)).toBe(before);
    }
  });
  it("paths are no shell text", async () => {
    const path = file("old\n", "a $(touch x) 'q' \"z\" [b].py");
    await say({ command: "str_replace", path, old_str: "old", new_str: "new" });
    expect(bytesOf(path)).toBe("new\n");
    expect(await say({ command: "view", path })).toContain("     1\tnew");
  });
  it("a file that the sandbox's programs can't write is an observation, and its history is as before", async () => {
    const path = file("old\n");
    const failing = (error: Error): Sandbox => ({ ...sandbox, writeFile: () => Promise.reject(error) });
    const edit = { command: "str_replace", path, old_str: "old", new_str: "new" };
    const said = async (error: Error) => (await call(edit, "openhands", failing(error))).output;
    expect(await said(new BoundaryError("sandbox", "unavailable", "sh: 12: Cannot fork"))).toContain("[Errno 5]");
    expect(await said(new SandboxFileError("bad_path", path, "File name too long"))).toContain("[Errno 22]");
    expect(await say({ command: "undo_edit", path })).toContain("No edit history found");
    const silent = failing(new BoundaryError("sandbox", "unavailable", "Docker was silent", { retryable: true }));
    await expect(call(edit, "openhands", silent)).rejects.toMatchObject({ boundary: "sandbox" });
  });
  it("a sandbox that is gone is no observation", async () => {
    const gone: Sandbox = {
      ...sandbox,
      exec: async () => {
        throw new BoundaryError("sandbox", "gone", "it is gone");
      },
    };
    await expect(call({ command: "view", path: "/x" }, "openhands", gone)).rejects.toMatchObject({
      boundary: "sandbox",
    });
  });
});

describe("properties", () => {
  const line = fc.constantFrom("", "a", "\tb", "é☃", "x\ry", "old");
  const text = fc
    .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "")), { maxLength: 8 })
    .map((lines) => lines.flat().join(""));

  it("create, replace, undo: the same bytes", async () => {
    await fc.assert(
      fc.asyncProperty(text, line, async (head, fresh) => {
        const path = join(folder, `p${names++}.py`);
        const content = `${head}needle\n${head}`;
        await call({ command: "create", path, file_text: content });
        const { error } = await call({ command: "str_replace", path, old_str: "needle", new_str: fresh });
        expect(error).toBeUndefined();
        await call({ command: "undo_edit", path });
        expect(readFileSync(path, "utf8")).toBe(content);
      }),
      { numRuns: 12 },
    );
  });
});
