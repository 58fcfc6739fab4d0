/** The tool over a real folder and a real shell, indexed in a real thread: it follows whatever happens to the files. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { localSandbox } from "../../testing/local-sandbox.ts";
import { IndexHost } from "./index-host.ts";
import { IndexThreads } from "./index-threads.ts";
import { readTar } from "./read-tar.ts";
import { search } from "./search.ts";
import { SearchRequest } from "./search-request.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rolldeck-search-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const put = (root: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
};
let repositories = 0;
const repository = (files: Readonly<Record<string, string | Uint8Array>>): string => {
  const root = join(folder, `repository-${repositories++}`);
  put(root, files);
  return root;
};
const sandboxOf = (root: string): Sandbox => ({ ...localSandbox(root), id: `sbx_${root}` });
const agent = { turn: 0, maxTurns: 1, contextTokens: 0, maxContextTokens: 1, calls: [] };
const call = (sandbox: Sandbox | undefined, args: JsonObject, instance: JsonObject = {}) =>
  search.call(args, {
    instance,
    agent,
    ...(sandbox && { sandbox }),
    signal: new AbortController().signal,
    deadlineMs: 0,
  });
const find = async (sandbox: Sandbox, name: string): Promise<string> =>
  (await call(sandbox, { search_terms: [name] })).output;

const shop = {
  "shop/cart.py": "class Cart:\n    def total(self):\n        return add_up(self)\n",
  "shop/money.py": "def add_up(cart):\n    return 0\n",
  ".git/hooks/x.py": "def hidden_function(): pass\n",
  "node_modules/dep/index.js": "function dependency() {}\n",
  "README.md": "add_up\n",
};

describe("search", () => {
  it("follows edits, additions, moves and deletions, by whoever they were made", async () => {
    const root = repository(shop);
    const sandbox = sandboxOf(root);
    expect(await find(sandbox, "add_up")).toContain("Found function `shop/money.py:add_up` (lines 1-2).");
    for (const hidden of ["hidden_function", "dependency"]) expect(await find(sandbox, hidden)).toContain("Nothing");
    put(root, {
      "shop/money.py": "# moved down\n\ndef add_up(cart):\n    return 0\n",
      "shop/tax.py": "def add_tax(): pass\n",
    });
    expect(await find(sandbox, "add_up")).toContain("(lines 3-4)");
    expect(await find(sandbox, "add_tax")).toContain("Found function `shop/tax.py:add_tax`");
    execFileSync("mv", ["shop/tax.py", "shop/duty.py"], { cwd: root });
    expect(await find(sandbox, "add_tax")).toContain("Found function `shop/duty.py:add_tax`");
    rmSync(join(root, "shop/duty.py"));
    expect(await find(sandbox, "shop/duty.py")).not.toContain("Found file");
  });
  it("sees an edit that keeps size and time of the file", async () => {
    const root = repository({ "a.py": "def one(): pass\n" });
    const sandbox = sandboxOf(root);
    const at = new Date("2024-01-01T00:00:00Z");
    utimesSync(join(root, "a.py"), at, at);
    expect(await find(sandbox, "one")).toContain("Found function `a.py:one`");
    put(root, { "a.py": "def two(): pass\n" });
    utimesSync(join(root, "a.py"), at, at);
    expect(await find(sandbox, "two")).toContain("Found function `a.py:two`");
  });
  it("writes nothing into the tree", async () => {
    const root = repository(shop);
    const before = execFileSync("find", [root], { encoding: "utf8" });
    await find(sandboxOf(root), "Cart");
    expect(execFileSync("find", [root], { encoding: "utf8" })).toBe(before);
  });
  it("takes every name a file may have, and passes by what is no text", async () => {
    const long = `${"deep/".repeat(60)}very_long_name_of_a_file.py`;
    const root = repository({
      "with space/ü (1) $x.py": "def spaced(): pass\n",
      [long]: "def deeply(): pass\n",
      "-rf.py": "def dashed(): pass\n",
      "two\nlines.py": "def broken_name(): pass\n",
      "binary.py": Buffer.from([0, 1, 2]),
      "latin.py": Buffer.from("# caf\xe9\ndef latin(): pass\n", "latin1"),
      "large.py": `x = [\n${"    1,\n".repeat(300_000)}]\n`,
    });
    const sandbox = sandboxOf(root);
    for (const name of ["spaced", "deeply", "dashed", "latin"]) {
      expect(await find(sandbox, name)).toContain(`Found function`);
    }
    expect(await find(sandbox, "large.py")).not.toContain("Found file");
  });
  it("answers what is asked wrongly, and says where there is no tree", async () => {
    const sandbox = sandboxOf(repository(shop));
    const empty: JsonObject[] = [{}, { search_terms: [" "] }, { line_nums: [] }];
    for (const args of empty) {
      expect((await call(sandbox, args)).error?.code).toBe("empty_search");
    }
    expect((await call(sandbox, { search_terms: ["x"], relation: "knows" })).error?.code).toBe("bad_arguments");
    await expect(call(sandbox, { search_terms: ["x"] }, { codeSearch: { root: "/no/such" } })).rejects.toMatchObject({
      boundary: "tool",
      code: "no_tree",
    });
    expect((await call(undefined, {})).error?.code).toBe("empty_search");
    await expect(call(undefined, { search_terms: ["x"] })).rejects.toMatchObject({ boundary: "infrastructure" });
    expect(await find(sandbox, "Cart")).toContain("Found class");
  });
  it("lets a lost sandbox through, and goes on after it", async () => {
    const sandbox = sandboxOf(repository(shop));
    let gone = true;
    const shaky: Sandbox = {
      ...sandbox,
      exec: async (request, signal) => {
        if (gone) throw new BoundaryError("sandbox", "gone", "it is gone");
        return sandbox.exec(request, signal);
      },
    };
    await expect(find(shaky, "Cart")).rejects.toMatchObject({ boundary: "sandbox", code: "gone" });
    gone = false;
    expect(await find(shaky, "Cart")).toContain("Found class");
  });
  it("cuts a long answer, and says so", async () => {
    const body = Array.from({ length: 390 }, (_, i) => `    value_${i} = "${"y".repeat(90)}"`).join("\n");
    const sandbox = sandboxOf(repository({ "long.py": `def long():\n${body}\n` }));
    const { output, wholeBytes } = await call(sandbox, { search_terms: ["long.py:long"] });
    expect(output).toMatch(/the rest of the answer is left out/);
    expect(output.length).toBeLessThan(25_000);
    expect(wholeBytes).toBeGreaterThan(output.length);
  });
});

describe("threads", () => {
  const signal = new AbortController().signal;
  it("fail what an ended thread was doing, and start anew", async () => {
    const threads = new IndexThreads();
    const task = { kind: "refresh", id: "x", listing: new Uint8Array() } as const;
    expect(await threads.run("a", task, signal)).toBeNull();
    const lost = threads.run("a", task, signal);
    await Promise.all([
      expect(lost).rejects.toMatchObject({ boundary: "infrastructure", retryable: true }),
      threads.close(),
    ]);
    expect(await threads.run("a", task, signal)).toBeNull();
    await expect(threads.run("a", { kind: "settle", id: "none" }, signal)).rejects.toMatchObject({
      code: "search_index",
    });
    await threads.close();
  });
  it("stop waiting when the signal aborts", async () => {
    const threads = new IndexThreads();
    const abort = new AbortController();
    const waiting = threads.run("a", { kind: "refresh", id: "x", listing: new Uint8Array() }, abort.signal);
    abort.abort(new Error("not wanted"));
    await expect(waiting).rejects.toThrow("not wanted");
    await threads.close();
  });
});

describe("host", () => {
  const listing = (files: Readonly<Record<string, string>>, at = 1) =>
    Buffer.from(
      Object.entries(files)
        .map(([path, text]) => `${Buffer.byteLength(text)} ${at}.0 ${at}.0 ./${path}\0`)
        .join(""),
    );
  const hashing = (files: Readonly<Record<string, string>>) =>
    Buffer.from(
      Object.entries(files)
        .map(([path, text]) => `${createHash("sha1").update(text).digest("hex")}  ./${path}\n`)
        .join(""),
    );
  const tarOf = (files: Readonly<Record<string, string>>): Buffer => {
    const root = repository(files);
    return execFileSync("tar", ["-C", root, "-cf", "-", "."], { maxBuffer: 1 << 26 });
  };
  const ask = (host: IndexHost, id: string, name: string) =>
    host.search(id, SearchRequest.parse({ search_terms: [name] }), () => false);
  const bring = async (host: IndexHost, id: string, files: Readonly<Record<string, string>>) => {
    const needed = host.open(id, "/r", listing(files), hashing(files));
    if (needed.length > 0) await host.supply(id, tarOf(files));
    host.settle(id);
    return needed.map(({ path }) => path);
  };
  const files = { "a.py": "def one(): pass\n", "b.py": "def two(): pass\n" };

  it("rollouts of one tree share it; what one changes the other does not see", async () => {
    const host = new IndexHost({ maxBytes: 1 << 30 });
    expect(await bring(host, "first", files)).toEqual(["a.py", "b.py"]);
    expect(await bring(host, "second", files)).toEqual([]);
    expect(host.facts()).toMatchObject({ trees: 1, rollouts: 2 });
    const changed = { ...files, "a.py": "def changed(): pass\n" };
    expect(host.refresh("first", listing(changed, 2))?.map(({ path }) => path)).toEqual(["a.py", "b.py"]);
    await host.supply("first", tarOf(changed));
    host.settle("first");
    expect(await ask(host, "first", "changed")).toContain("Found function");
    expect(await ask(host, "second", "changed")).toContain("Nothing");
    expect(await ask(host, "second", "one")).toContain("Found function");
  });
  it("a content that is not what its hash says is never another rollout's", async () => {
    const host = new IndexHost({ maxBytes: 1 << 30 });
    host.open("liar", "/r", listing(files), hashing(files));
    await host.supply("liar", tarOf({ ...files, "a.py": "def forged(): pass\n" }));
    host.settle("liar");
    expect(await bring(host, "honest", files)).toEqual(["a.py"]);
    expect(await ask(host, "honest", "forged")).toContain("Nothing");
    expect(await ask(host, "liar", "forged")).toContain("Found function");
  });
  it("a refresh that was cut short is asked for again", async () => {
    const host = new IndexHost({ maxBytes: 1 << 30 });
    await bring(host, "x", files);
    const changed = { ...files, "c.py": "def three(): pass\n" };
    expect(host.refresh("x", listing(changed))).toHaveLength(1);
    expect(host.refresh("x", listing(changed))).toHaveLength(1);
    await host.supply("x", tarOf(changed));
    host.settle("x");
    expect(host.refresh("x", listing(changed))).toEqual([]);
    expect(await ask(host, "x", "three")).toContain("Found function");
  });
  it("keeps its memory bounded: the tree used longest ago is brought again", async () => {
    const large = (name: string) => ({
      [`${name}.py`]: Array.from({ length: 400 }, (_, i) => `def ${name}_${i}(): pass\n`).join(""),
    });
    const host = new IndexHost({ maxBytes: 3_000_000 });
    for (const name of ["a", "b", "c", "d", "e", "f"]) await bring(host, name, large(name));
    expect(host.facts().bytes).toBeLessThan(3_000_000);
    expect(host.facts().trees).toBeLessThan(6);
    expect(host.refresh("a", listing(large("a")))).toBeNull();
    expect(await ask(host, "f", "f_7")).toContain("Found function");
  });
  it("many changes become a tree of the rollout's own", async () => {
    const host = new IndexHost({ maxBytes: 1 << 30 });
    await bring(host, "x", files);
    const many = Object.fromEntries(Array.from({ length: 320 }, (_, i) => [`n${i}.py`, `def made_${i}(): pass\n`]));
    host.refresh("x", listing({ ...files, ...many }));
    await host.supply("x", tarOf(many));
    host.settle("x");
    expect(host.facts().trees).toBe(2);
    expect(await ask(host, "x", "made_319")).toContain("Found function");
    expect(await ask(host, "x", "one")).toContain("Found function");
  });
});

describe("tar", () => {
  it("gives the files of a real archive, in every format of tar", () => {
    const files = { "a.py": "x = 1\n", [`${"long/".repeat(30)}name.py`]: "y".repeat(1000), "empty.py": "" };
    const root = repository(files);
    for (const format of ["gnu", "pax", "ustar"]) {
      const tar = execFileSync("tar", ["-C", root, "-H", format, "-cf", "-", "."], { maxBuffer: 1 << 24 });
      const read = Object.fromEntries(
        [...readTar(tar)].map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
      );
      expect(read).toEqual(files);
    }
  });
  it("never throws on what is none", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2048 }), (bytes) => {
        expect([...readTar(bytes)].length).toBeLessThan(10);
      }),
    );
  });
});
