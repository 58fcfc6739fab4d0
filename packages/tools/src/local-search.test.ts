import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { localSearch } from "./local-search.ts";
import { findTool } from "./registry.ts";
import { checkCorpusFile, readCorpusFile } from "./search/corpus-file.ts";
import { OpenCorpora } from "./search/open-corpora.ts";
import { snippet } from "./search/snippet.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-corpus-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | Uint8Array): string {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
}
const jsonl = (documents: readonly JsonObject[]): string => documents.map((each) => JSON.stringify(each)).join("\n");

const context = (instance: JsonObject): ToolContext => ({
  instance,
  agent: { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] },
  signal: new AbortController().signal,
  deadlineMs: 1000,
});
const search = (query: string, scope: JsonObject): Promise<ToolOutcome> =>
  localSearch.call({ query }, context({ search: scope }));

const documents: JsonObject[] = [
  { id: "a", title: "Paris", text: "Capital of France." },
  { id: "b", title: "Lyon", text: "A city in France; not its capital." },
  { id: "c", text: "東京は日本の首都です。" },
  { id: 4, title: "", text: "Zürich lies in Switzerland 🏔️" },
];

describe("local_search", () => {
  test("gives the best documents with id, title and text, best first", async () => {
    const { output } = await search("capital France", { corpus: documents });
    expect(output).toBe("[a] Paris: Capital of France.\n[b] Lyon: A city in France; not its capital.");
    expect((await search("capital", { corpus: documents, topK: 1 })).output).toBe("[a] Paris: Capital of France.");
  });
  test("titles, numbers as ids, other scripts", async () => {
    expect((await search("LYON?", { corpus: documents })).output).toMatch(/^\[b\] Lyon:/);
    expect((await search("首都", { corpus: documents })).output).toBe("[c] 東京は日本の首都です。");
    expect((await search("zürich", { corpus: documents })).output).toBe("[4] Zürich lies in Switzerland 🏔️");
  });
  test("a document that is called so comes before those that mention it", async () => {
    const mentions = [
      { id: "x", title: "Bern", text: "Seat of Rome" },
      { id: "y", title: "Rome", text: "Old city here" },
    ];
    expect((await search("rome", { corpus: mentions, topK: 1 })).output).toBe("[y] Rome: Old city here");
  });
  test("nothing found is an answer; a query without words is told so", async () => {
    expect(await search("xyz", { corpus: documents })).toEqual({ output: "no results" });
    expect(await search("xyz", { corpus: [] })).toEqual({ output: "no results" });
    for (const empty of ["", "  ", "?!…"]) {
      expect((await search(empty, { corpus: documents })).error?.code).toBe("empty_query");
    }
  });
  test("from a file it answers the same", async () => {
    const corpus = file("corpus.jsonl", `\n${jsonl(documents)}\n\n`);
    for (const query of ["capital France", "首都", "nothing here"]) {
      expect(await search(query, { corpus })).toEqual(await search(query, { corpus: documents }));
    }
  });
  test("dumps with one field for title and text", async () => {
    const corpus = file(
      "contents.jsonl",
      jsonl([
        { id: "0", contents: '"Ada"\nWrote notes.' },
        { id: 1, contents: "x" },
      ]),
    );
    expect((await search("ada", { corpus })).output).toBe("[0] Ada: Wrote notes.");
    expect((await search("x", { corpus })).output).toBe("[1] x");
  });
  test("a corpus that can't be searched is nobody's observation", async () => {
    const wrong = [path.join(folder, "missing.jsonl"), file("wrong.jsonl", "{}"), [{ id: "a" }], folder];
    for (const corpus of wrong) {
      await expect(search("a", { corpus })).rejects.toMatchObject({ boundary: "infrastructure", code: "bad_corpus" });
    }
    await expect(localSearch.call({ query: "a" }, context({}))).rejects.toMatchObject({
      boundary: "infrastructure",
      code: "no_corpus",
    });
  });
  test("whatever is asked, it answers with text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 300 }), async (query) => {
        expect(typeof (await search(query, { corpus: documents })).output).toBe("string");
      }),
    );
  });
  test("a query as long as a book is cut, not refused", async () => {
    expect((await search(`lyon ${"x ".repeat(500_000)}`, { corpus: documents })).output).toMatch(/^\[b\]/);
  });
  test("is registered and may run twice", () => {
    expect(findTool("local_search")).toBe(localSearch);
    expect(localSearch.idempotent).toBe(true);
  });
});

describe("corpus files", () => {
  test.each([
    ["not JSON", `${jsonl(documents)}\n{"id":`, /line 5: not JSON/],
    ["another shape", `\n\n{"id":"a","body":"x"}`, /line 3: not/],
    ["nothing", "\n \n", /no documents/],
    ["not UTF-8", new Uint8Array([0x7b, 0xff, 0xfe]), /not UTF-8/],
    ["cut UTF-8", new Uint8Array([0x20, 0xe2, 0x82]), /not UTF-8/],
  ])("%s: refused with its place", async (_what, content, message) => {
    await expect(readCorpusFile(file("bad.jsonl", content))).rejects.toThrow(message);
    await expect(checkCorpusFile(file("bad.jsonl", content))).rejects.toThrow(message);
  });
  test("limits are met before the corpus is held", async () => {
    const corpus = file("large.jsonl", jsonl(documents));
    await expect(readCorpusFile(corpus, { bytes: 50, documents: 9 })).rejects.toThrow(/at most 50/);
    await expect(readCorpusFile(corpus, { bytes: 5_000, documents: 3 })).rejects.toThrow(/more than 3 documents/);
    expect(await checkCorpusFile(corpus)).toBe(4);
  });
  test("lines longer than a read, characters across reads", async () => {
    const long = "é".repeat(300_000);
    const corpus = file(
      "long.jsonl",
      jsonl([
        { id: "a", text: `start ${long}` },
        { id: "b", text: "end" },
      ]),
    );
    const { documents: read, index } = await readCorpusFile(corpus);
    expect(read[0]?.text).toBe(`start ${long}`);
    expect(index.search("end", 3)).toHaveLength(1);
  });
});

describe("open corpora", () => {
  test("a file is indexed once, anew when it changed, and the longest unused is let go", async () => {
    const corpora = new OpenCorpora({ maxOpen: 2 });
    const [a, b, c] = ["a", "b", "c"].map((name) => file(`${name}.jsonl`, jsonl([{ id: name, text: name }])));
    if (!a || !b || !c) throw new Error("no files");
    const first = await corpora.file(a);
    expect(await corpora.file(a)).toBe(first);
    await corpora.file(b);
    expect(await corpora.file(a)).toBe(first);
    await corpora.file(c);
    expect(await corpora.file(a)).toBe(first);
    const [again, same] = await Promise.all([corpora.file(b), corpora.file(b)]);
    expect(again).toBe(same);
    writeFileSync(b, jsonl([{ id: "b", text: "changed" }]));
    utimesSync(b, 1, 1);
    expect((await corpora.file(b)).documents[0]?.text).toBe("changed");
  });
  test("a failure is not kept", async () => {
    const corpora = new OpenCorpora({ maxOpen: 2 });
    const at = file("later.jsonl", "nonsense");
    await expect(corpora.file(at)).rejects.toThrow(/not JSON/);
    writeFileSync(at, jsonl(documents));
    expect((await corpora.file(at)).documents).toHaveLength(4);
  });
});

describe("snippets", () => {
  test("short texts whole, long ones around the first word found, never half a character", () => {
    expect(snippet("abc", ["c"], 3)).toBe("abc");
    expect(snippet(`${"x ".repeat(50)}needle ${"y ".repeat(50)}`, ["needle"], 20)).toBe("…x x needle y y y y y…");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.integer({ min: 2, max: 30 }), (text, limit) => {
        const cut = snippet(text, [...text].slice(10, 11), limit);
        expect(cut.length).toBeLessThanOrEqual(Math.max(limit + 3, 3));
        expect(cut).not.toMatch(/\p{Cs}/u);
      }),
    );
  });
});
