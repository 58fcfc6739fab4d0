import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCalls, anyTurn, toolsOf } from "../../../testing/any-turn.ts";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { type DialectName, dialects } from "../registry.ts";

const names = Object.keys(dialects) as DialectName[];
const parsed = (name: DialectName, text: string) => {
  const { content, calls, error } = dialects[name].parse(text, getAndFinish);
  return { content, error, calls: calls.map((call) => [call.name, call.arguments]) };
};

describe.each(names)("%s", (dialect) => {
  it("reads back the parts of any turn that it renders", () => {
    fc.assert(
      fc.property(anyTurn, (turn) => {
        const text = writes(dialect, () => dialects[dialect].renderTurn(turn));
        const read = dialects[dialect].parse(text, toolsOf(turn.calls));
        expect({ ...read, calls: read.calls.map((one) => ({ name: one.name, arguments: one.arguments })) }).toEqual({
          ...turn,
          error: null,
          repairs: [],
        });
      }),
      { numRuns: 300 },
    );
  });

  it("renders calls as it renders a turn of calls", () => {
    fc.assert(
      fc.property(anyCalls, (calls) => {
        fc.pre(calls.length > 0);
        const rendered = writes(dialect, () => dialects[dialect].renderCalls(calls));
        expect(rendered).toBe(dialects[dialect].renderTurn({ calls }));
        expect(dialects[dialect].looksLike(rendered) || dialect.startsWith("llama")).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("never throws, whatever the text", () => {
    const shreds = fc.constantFrom(
      ...[
        "[get(",
        "key=",
        '"',
        "'",
        '"""',
        "\\",
        "\\u",
        "\n",
        ")",
        "]",
        "[",
        "{",
        "}",
        ",",
        ":",
        "<tool_call>",
        "</tool_call>",
      ],
      ...[
        '{"name":',
        '"arguments"',
        "<think>",
        "</think>",
        "1e999",
        "9".repeat(30),
        "\ud800",
        "\u0000",
        "None",
        "get(key=",
        "é",
      ],
      ...["<function=get>", "<function=", "<parameter=key>", "<parameter=", "</parameter>", "</function>"],
      ...[
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
        "[THINK]",
        "[/THINK]",
        "<|python_tag|>",
        "<|python_start|>",
        ";",
        "```",
      ],
      ...['"parameters"', '"tool_calls":[', '"content":', '{"name": "get", "parameters": {"key": "a"}}'],
      '{"name": "get", "arguments": {"key": "a"}}',
    );
    const garbage = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(shreds, { maxLength: 40 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(garbage, (text) => {
        const { calls, error, repairs } = dialects[dialect].parse(text, getAndFinish);
        expect(error === null || error.length > 0).toBe(true);
        expect(repairs.length).toBeLessThanOrEqual(calls.length);
        for (const said of repairs) expect(said.length).toBeLessThan(500);
        calls.forEach((one, i) => {
          expect(one.index).toBe(i);
          expect(text).toContain(one.raw);
          expect(JSON.parse(JSON.stringify(one.arguments))).toEqual(one.arguments);
        });
      }),
      { numRuns: 1000 },
    );
  });

  it("stays upright under deep nesting and long repetition", () => {
    const parts = [
      "[a(x=",
      "[a(",
      '{"a":',
      "[",
      "<tool_call>",
      "[a(x='",
      '[a("',
      "<tool_call>{",
      "((",
      "\\",
      "<think>",
    ];
    parts.push(
      "<function=a><parameter=b>",
      "[TOOL_CALLS][{",
      "[TOOL_CALLS]a[ARGS]{",
      '{"name":"a",\n',
      "<|python_tag|>{",
    );
    for (const part of parts) {
      expect(() => dialects[dialect].parse(part.repeat(20_000), getAndFinish)).not.toThrow();
    }
  });

  it("tells one tool from another, whatever the name (fault 7)", () => {
    for (const name of ["Bash", "get", "x".repeat(300)]) {
      const text = dialects[dialect].renderCalls([{ name, arguments: {} }]);
      expect(parsed(dialect, text)).toMatchObject({ error: null, calls: [[name, {}]] });
    }
    const spaced = dialects[dialect].parse(
      dialects[dialect].renderCalls([{ name: "functions.get", arguments: { key: "a" } }]),
      getAndFinish,
    );
    expect(spaced.calls.map((one) => one.name)).toEqual(["get"]);
    expect(spaced.repairs).toEqual(["get: the name functions.get was read as get"]);
    const made = dialects[dialect].renderCalls([{ name: "functions.search", arguments: {} }]);
    expect(parsed(dialect, made).calls).toEqual([["functions.search", {}]]);
  });
});

/** The XML formats have no escapes: what they can't write is no turn of theirs. */
function writes(dialect: DialectName, render: () => string): string {
  try {
    return render();
  } catch (error) {
    fc.pre(!(error instanceof RangeError && ["qwen-xml", "skyrl"].includes(dialect)));
    throw error;
  }
}

describe.each(names.filter((one) => one !== "openai"))("%s as text", (dialect) => {
  it("takes thoughts for thoughts", () => {
    const { open, close } =
      dialect === "mistral" ? { open: "[THINK]", close: "[/THINK]" } : { open: "<think>", close: "</think>" };
    const call = dialects[dialect].renderCalls([{ name: "get", arguments: { key: "a" } }]);
    const asWritten = [["get", { key: "a" }]];
    // Never closed: no answer. Closed without being opened: the prompt opened it.
    expect(dialects[dialect].parse(`${open}I try\n${call}`, getAndFinish)).toMatchObject({
      calls: [],
      content: "",
      error: null,
    });
    for (const thought of [
      `${open}\n${call}\n`,
      `${call}\n`,
      "hm",
      `${open}${open} one`,
      "<tool_call> or [get(",
      call.slice(0, -3),
    ]) {
      const read = dialects[dialect].parse(`${thought}${close}\n\nso\n${call}`, getAndFinish);
      expect(read.calls.map((one) => [one.name, one.arguments])).toEqual(asWritten);
      expect(read).toMatchObject({ content: "so", error: null, repairs: [] });
      expect(read.reasoning).toBe(thought.replace(open, "").trim());
    }
    const empty = dialects[dialect].parse(`${open}\n\n${close}\n\n${call}`, getAndFinish);
    expect(empty).toMatchObject({ reasoning: "", content: "", error: null });
    expect(empty.calls).toHaveLength(1);
  });

  it("takes a mark in the middle of a line for a mention", () => {
    const [open, close] = dialect === "mistral" ? ["[THINK]", "[/THINK]"] : ["<think>", "</think>"];
    const call = dialects[dialect].renderCalls([{ name: "get", arguments: { key: "a" } }]);
    for (const [text, reasoning] of [
      [`I add a ${open} tag.\n${call}`, ""],
      [`${open}hm${close}\n${call}\nThis closed the ${close} tag.`, "hm"],
      [`${open}hm${close}\nBoth ${open} and ${close}.\n${call}`, "hm"],
      // In thinking that the prompt opened, or that goes on behind a mention, the last one at the beginning of a line counts.
      [`Both ${open} and\n${call}\n${close}\n${call}`, `Both ${open} and\n${call}`],
      [`${open}Both ${open} and ${close} are tags.\n${call}\n${close}\n${call}`, expect.stringContaining("are tags.")],
    ] as const) {
      const read = dialects[dialect].parse(text, getAndFinish);
      expect(read).toMatchObject({ reasoning, error: null });
      expect(read.calls).toHaveLength(1);
    }
  });

  it("keeps thoughts between calls apart", () => {
    const [one, two] = ["a", "b"].map((key) => dialects[dialect].renderCalls([{ name: "get", arguments: { key } }]));
    const read = dialects[dialect].parse(`${one}\n<think>next</think>\n${two}`, getAndFinish);
    expect(read.calls.map((call) => call.arguments.key)).toEqual(["a", "b"]);
    expect(read).toMatchObject({ reasoning: "next", content: "", error: null });
  });

  it("says nothing of empty and blank texts (fault 11)", () => {
    for (const text of ["", " ", "\n\n", "None", "null"]) {
      const read = dialects[dialect].parse(text, getAndFinish);
      expect(read).toEqual({ content: text.trim(), reasoning: "", calls: [], error: null, repairs: [] });
    }
    expect(dialects[dialect].renderTurn({ calls: [], content: "", reasoning: "" })).toBe("");
  });

  it("is no call while it is cut (fault 9)", () => {
    const args = { key: "a\nb", note: "c" };
    const whole = dialects[dialect].renderCalls([{ name: "get", arguments: args }]);
    for (let end = 0; end < whole.length; end++) {
      const read = dialects[dialect].parse(whole.slice(0, end), getAndFinish);
      // A call that lacks no more than its last marks is whole; it is never another one.
      for (const call of read.calls) expect([call.name, call.arguments]).toEqual(["get", args]);
    }
  });

  it("describes every tool and its format", () => {
    const text = dialects[dialect].describeTools(getAndFinish);
    for (const word of ["get", "finish", "key", "Looks a key up"]) expect(text).toContain(word);
  });
});
