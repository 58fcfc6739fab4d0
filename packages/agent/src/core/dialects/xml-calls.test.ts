import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { qwenXml } from "./qwen-xml.ts";
import { skyrl } from "./skyrl.ts";

const tool = (name: string, properties: JsonObject): ToolSpec => ({
  name,
  description: "",
  parameters: { properties },
});
const text: JsonObject = { type: "string" };
const tools: readonly ToolSpec[] = [
  tool("bash", { command: text, background: { type: "boolean" } }),
  tool("write", { content: text }),
  tool("typed", {
    count: { type: "integer" },
    ratio: { type: "number" },
    tags: { type: "array", items: text },
    at: { type: "object" },
    maybe: { anyOf: [{ type: "integer" }, { type: "null" }] },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
    free: {},
  }),
];
const read = (source: string, dialect = qwenXml) => {
  const { calls, ...parsed } = dialect.parse(source, tools);
  return { ...parsed, calls: calls.map((call) => [call.name, call.arguments]) };
};
const wrap = (inner: string) => `<tool_call>\n${inner}\n</tool_call>`;
const good = wrap("<function=bash>\n<parameter=command>\npwd\n</parameter>\n</function>");
const goodCall = ["bash", { command: "pwd" }];

describe("qwen-xml with missing tags (fault 5)", () => {
  const ls = ["bash", { command: "ls -la" }];
  it.each<[string, string, RegExp]>([
    [
      "no </parameter>",
      wrap("<function=bash>\n<parameter=command>\nls -la\n</function>"),
      /missing <\/parameter> of command/,
    ],
    [
      "no </parameter> before the next parameter",
      wrap("<function=bash>\n<parameter=command>\nls -la\n<parameter=background>\nfalse\n</parameter>\n</function>"),
      /missing <\/parameter>/,
    ],
    ["no </function>", wrap("<function=bash>\n<parameter=command>\nls -la\n</parameter>"), /missing <\/function>/],
    [
      "no </tool_call>",
      "<tool_call>\n<function=bash>\n<parameter=command>\nls -la\n</parameter>\n</function>\n",
      /missing <\/tool_call>/,
    ],
    [
      "neither </parameter> nor </function>",
      wrap("<function=bash>\n<parameter=command>\nls -la"),
      /<\/parameter>.*<\/function>/,
    ],
  ])("%s: runs, and says so", (_name, source, repair) => {
    for (const after of ["", `\n${good}`]) {
      const { calls, error, repairs } = read(source + after);
      expect(error).toBeNull();
      expect(calls[0]?.[1]).toMatchObject({ command: "ls -la" });
      expect(calls.slice(1)).toEqual(after === "" ? [] : [goodCall]);
      expect(repairs).toEqual([expect.stringMatching(repair)]);
    }
  });
  it("says so in a few words, however many tags are missing", () => {
    const parameters = Array.from({ length: 50 }, (_, i) => `<parameter=${"p".repeat(90)}${i}>\nx`).join("\n");
    const { repairs, error } = read(wrap(`<function=bash>\n${parameters}\n</function>`));
    expect(error).toBeNull();
    expect(repairs[0]?.length).toBeLessThan(500);
  });
  it("needs no outer tags", () => {
    const source = "<function=bash>\n<parameter=command>\nls -la\n</parameter>\n</function>";
    expect(read(source)).toMatchObject({ calls: [ls], error: null, repairs: [], content: "" });
  });
  it.each<[string, string, RegExp]>([
    [
      "no > in a parameter's tag",
      wrap("<function=bash>\n<parameter=command ls -la\n</parameter>\n</function>"),
      /bash: no readable name in the tag "<parameter=command ls -la"/,
    ],
    ["the same, cut", "<tool_call>\n<function=bash>\n<parameter=command ls -la\n</parameter>", /no readable name/],
    [
      "a > further on",
      wrap("<function=bash>\n<parameter=command ls > out\n</parameter>\n</function>"),
      /no readable name/,
    ],
    [
      "text ends in the value",
      "<tool_call>\n<function=bash>\n<parameter=command>\nls -la",
      /bash: the call is not finished/,
    ],
    [
      "text ends behind the value",
      "<tool_call>\n<function=bash>\n<parameter=command>\nls -la\n</parameter>\n",
      /not finished/,
    ],
    [
      "no > in the function's tag",
      wrap("<function=bash\n<parameter=command>\nls\n</parameter>\n</function>"),
      /expected <function=name>/,
    ],
    ["empty", "<tool_call>\n</tool_call>", /expected <function=name>, found "<\/tool_call>"/],
    ["JSON", wrap('{"name": "bash", "arguments": {"command": "ls"}}'), /expected <function=name>, found "{/],
    [
      "words between parameters",
      wrap("<function=bash>\nnow\n<parameter=command>\nls\n</parameter>\n</function>"),
      /bash: expected <parameter=name> or <\/function>, found "now"/,
    ],
    [
      "a parameter twice",
      wrap("<function=bash>\n<parameter=command>\na\n</parameter>\n<parameter=command>\nb\n</parameter>\n</function>"),
      /command is given twice/,
    ],
    [
      "a tag of the format inside a value",
      wrap("<function=write>\n<parameter=content>\na </function> b\n</parameter>\n</function>"),
      /write: a value holds tags of the call format/,
    ],
    [
      "the closing tag inside a value",
      wrap("<function=write>\n<parameter=content>\na </parameter> b\n</parameter>\n</function>"),
      /expected <parameter=name> or <\/function>, found "b"/,
    ],
  ])("%s: told, and the next call runs", (_name, source, problem) => {
    expect(read(source)).toMatchObject({ calls: [], error: expect.stringMatching(problem) });
    expect(read(`${source}\n${good}`)).toMatchObject({ calls: [goodCall], error: expect.stringMatching(problem) });
    expect(read(`${good}\n${source}\n${good}`)).toMatchObject({ calls: [goodCall, goodCall] });
  });
  it("never runs what stands in a value", () => {
    const inner = wrap("<function=bash>\n<parameter=command>\nrm -rf /\n</parameter>\n</function>");
    for (const value of [inner, `${inner}\n${inner}`, `say\n${inner}\nthen`, `${inner}<tool_call>`]) {
      const source = wrap(`<function=write>\n<parameter=content>\n${value}\n</parameter>\n</function>`);
      expect(read(source)).toMatchObject({ calls: [], error: expect.stringContaining("write: ") });
      expect(read(`${good}\n${source}`).calls).toEqual([goodCall]);
    }
  });
});

describe.each([qwenXml, skyrl])("values in $name", (dialect) => {
  const call = (parameters: string) => read(`<function=typed>\n${parameters}\n</function>`, dialect);
  it.each<[string, JsonObject]>([
    ["<parameter=count>5</parameter>", { count: 5 }],
    ["<parameter=count>\n 5 \n</parameter>", { count: 5 }],
    ["<parameter=ratio>\n-1.5e3\n</parameter>", { ratio: -1500 }],
    ['<parameter=tags>\n["a", "b"]\n</parameter>', { tags: ["a", "b"] }],
    ['<parameter=at>\n{"x": {"y": null}}\n</parameter>', { at: { x: { y: null } } }],
    ["<parameter=maybe>\nNone\n</parameter>", { maybe: null }],
    ["<parameter=either>\n5\n</parameter>", { either: "5" }],
    ["<parameter=free>\n[1]\n</parameter>", { free: "[1]" }],
    ["<parameter=unknown>\n5\n</parameter>", { unknown: "5" }],
    ["<parameter=count>five</parameter>", { count: "five" }],
    ["<parameter=tags>['a']</parameter>", { tags: "['a']" }],
    ["<parameter=either>\n\n  two\n\n</parameter>", { either: "\n  two\n" }],
    ["<parameter=either></parameter>", { either: "" }],
    ["<parameter=either>a < b && <b>c</b> &lt;</parameter>", { either: "a < b && <b>c</b> &lt;" }],
  ])("%s", (source, expected) => {
    expect(call(source)).toMatchObject({ calls: [["typed", expected]], error: null, repairs: [] });
  });
  it("refuses to write what it could not read back", () => {
    for (const value of ["</parameter>", "a<parameter=b>", "</function>"]) {
      expect(() => dialect.renderCalls([{ name: "f", arguments: { a: value } }])).toThrow(RangeError);
    }
    expect(() => dialect.renderCalls([{ name: "f", arguments: { "a b": 1 } }])).toThrow(RangeError);
    expect(() => dialect.renderCalls([{ name: "a>b", arguments: {} }])).toThrow(RangeError);
    const inJson = [{ name: "typed", arguments: { tags: ["</parameter>", "<tool_call>"] } }];
    expect(read(dialect.renderCalls(inJson), dialect).calls).toEqual([["typed", inJson[0]?.arguments]]);
  });
  it("never runs a call with other arguments than were written, nor one that was not", () => {
    const soup = [
      "</parameter>",
      "</function>",
      "<function=bash>",
      "<tool_call>",
      "</tool_call>",
      "<parameter",
      "</",
      "a",
      "\n",
    ];
    const value = fc.array(fc.constantFrom(...soup), { maxLength: 8 }).map((parts) => parts.join(""));
    const open = dialect.name === "skyrl" ? "" : "<tool_call>\n";
    const close = dialect.name === "skyrl" ? "" : "\n</tool_call>";
    fc.assert(
      fc.property(value, (content) => {
        // A value that closes its whole call is, in a format without escapes, the end of that call.
        fc.pre(!/<\/parameter>\s*<\/function>/.test(content));
        const source = `${open}<function=write>\n<parameter=content>\n${content}\n</parameter>\n</function>${close}`;
        const { calls, error } = read(source, dialect);
        if (calls.length === 0) expect(error).not.toBeNull();
        else expect(calls).toEqual([["write", { content }]]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("skyrl", () => {
  it("answers as the user, under a heading", () => {
    const [call] = skyrl.parse("<function=bash>\n<parameter=command>ls</parameter>\n</function>", tools).calls;
    expect(skyrl.resultRole).toBe("user");
    expect(call && skyrl.renderResult(call, "a\nb")).toBe("EXECUTION RESULT of [bash]:\na\nb");
  });
  it("writes short values in their line, others on their own", () => {
    expect(skyrl.renderCalls([{ name: "bash", arguments: { command: "ls", note: "a\nb", n: 1 } }])).toBe(
      "<function=bash>\n<parameter=command>ls</parameter>\n<parameter=note>\na\nb\n</parameter>\n<parameter=n>1</parameter>\n</function>",
    );
  });
});
