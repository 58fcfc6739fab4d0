/** Editor and search in a real container, beside a shell: whatever changes a file, the next search and the next view know it. */

import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import { testDocker } from "@rolldeck/sandbox/testing/test-docker";
import { search } from "@rolldeck/tools/code-search/search";
import { strReplaceEditor } from "@rolldeck/tools/editor/str-replace-editor";
import { afterAll, describe, expect, test } from "vitest";

const docker = testDocker();

describe.skipIf(docker === null)("files in a container", () => {
  const runtimes = new DockerRuntimes("search");
  const signal = new AbortController().signal;
  afterAll(() => runtimes.close());

  const shell = async (sandbox: Sandbox, script: string): Promise<void> => {
    const { exitCode, stderr } = await sandbox.exec({ command: ["sh", "-ec", script], timeoutMs: 60_000 }, signal);
    if (exitCode !== 0) throw new Error(Buffer.from(stderr.head).toString());
  };
  const root = "/tmp/repo";
  const call = (sandbox: Sandbox, tool: Tool, args: JsonObject) =>
    tool.call(args, {
      ...{ instance: { codeSearch: { root } }, sandbox, signal, deadlineMs: Date.now() + 60_000 },
      agent: { turn: 0, maxTurns: 9, contextTokens: 0, maxContextTokens: 9, calls: [] },
    });
  const find = async (sandbox: Sandbox, name: string) => (await call(sandbox, search, { search_terms: [name] })).output;
  const edit = (sandbox: Sandbox, args: JsonObject) => call(sandbox, strReplaceEditor, args);

  test("search follows the editor, the shell and git, all at once and one by one", async () => {
    const sandbox = await runtimes.open();
    await shell(
      sandbox,
      `mkdir -p ${root}; cd ${root}; cp -r /usr/lib/python3.11/json /usr/lib/python3.11/email /usr/lib/python3.11/http .
       git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm one`,
    );
    expect(await find(sandbox, "json/decoder.py:JSONDecoder.raw_decode")).toContain("def raw_decode(self, s, idx=0):");
    const path = `${root}/json/decoder.py`;
    const { error } = await edit(sandbox, {
      ...{ command: "str_replace", path, old_str: "def raw_decode(self, s, idx=0):" },
      new_str: "def raw_decode_from(self, s, idx=0):",
    });
    expect(error).toBeUndefined();
    expect(await find(sandbox, "raw_decode_from")).toContain(
      "Found function `json/decoder.py:JSONDecoder.raw_decode_from`",
    );
    await shell(
      sandbox,
      `cd ${root}; git checkout -q -- .; rm json/tool.py; echo 'def freshly_written(): pass' > fresh.py`,
    );
    expect(await find(sandbox, "raw_decode_from")).toContain("Nothing is called `raw_decode_from`");
    expect(await find(sandbox, "json/tool.py")).not.toContain("Found file");
    expect(await find(sandbox, "freshly_written")).toContain("Found function `fresh.py:freshly_written`");
    const callers = await call(sandbox, search, { search_terms: ["JSONDecoder.raw_decode"], relation: "invoked_by" });
    expect(callers.output).toContain("`json/decoder.py:JSONDecoder.decode`");
  });

  test("two sandboxes of one tree differ by what each of them changed", async () => {
    const [one, two] = await Promise.all([runtimes.open(), runtimes.open()]);
    const script = `mkdir -p ${root}; cp -r /usr/lib/python3.11/json ${root}`;
    await Promise.all([shell(one, script), shell(two, script)]);
    expect(await find(one, "py_scanstring")).toContain("Found function");
    expect(await find(two, "py_scanstring")).toContain("Found function");
    await edit(one, { command: "create", path: `${root}/only_one.py`, file_text: "def only_in_one(): pass\n" });
    expect(await find(one, "only_in_one")).toContain("Found function");
    expect(await find(two, "only_in_one")).toContain("Nothing");
  });

  test("edits and their history live in the sandbox: another worker's handle undoes them", async () => {
    const sandbox = await runtimes.open();
    const path = "/tmp/a file.py";
    await sandbox.writeFile(path, Buffer.from("one\r\ncaf\xe9\r\n", "latin1"), { mode: 0o755 }, signal);
    await edit(sandbox, { command: "str_replace", path, old_str: "one", new_str: "two" });
    expect(Buffer.from(await sandbox.readFile(path, { maxBytes: 100 }, signal)).toString("latin1")).toBe(
      "two\r\ncaf\xe9\r\n",
    );
    const other = await runtimes.docker.attach(sandbox.id, signal);
    expect((await edit(other, { command: "undo_edit", path })).output).toMatch(
      /^Last edit to \/tmp\/a file\.py undone/,
    );
    expect(Buffer.from(await sandbox.readFile(path, { maxBytes: 100 }, signal)).toString("latin1")).toBe(
      "one\r\ncaf\xe9\r\n",
    );
    await shell(sandbox, `test "$(stat -c %a '${path}')" = 755`);
    expect((await edit(sandbox, { command: "view", path: "/dev/zero" })).error?.code).toBe("edit_refused");
  });

  test("a sandbox that is gone is said as that", async () => {
    const sandbox = await runtimes.open();
    await runtimes.docker.close(sandbox.id, signal);
    await expect(edit(sandbox, { command: "view", path: "/tmp" })).rejects.toMatchObject({
      boundary: "sandbox",
      code: "gone",
    });
    await expect(find(sandbox, "x")).rejects.toMatchObject({ boundary: "sandbox", code: "gone" });
  });
});
