import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { openai } from "./openai.ts";
import { OpenAiMessage, OpenAiStream, wholeAnswer } from "./openai-stream.ts";
import { type OpenAiAnswer, openAiTurnText } from "./openai-turn.ts";

const streamed = (deltas: readonly unknown[], names?: ReadonlySet<string>): OpenAiAnswer => {
  const stream = new OpenAiStream(names);
  for (const delta of deltas) stream.push(OpenAiMessage.parse(delta));
  return stream.answer();
};
const turn = (answer: OpenAiAnswer) => openai.parse(openAiTurnText(answer), getAndFinish);
const callPieces = (...pieces: object[]) => pieces.map((piece) => ({ tool_calls: [piece] }));

const twoCalls = [
  { id: "c1", name: "bash", arguments: '{"command":"ls"}' },
  { id: "c2", name: "read_file", arguments: '{"path":"a"}' },
];
const pieces = [
  { index: 0, id: "c1", type: "function", function: { name: "bash", arguments: "" } },
  { index: 0, function: { arguments: '{"comm' } },
  { index: 1, id: "c2", function: { name: "read_file", arguments: '{"pa' } },
  { index: 0, function: { arguments: 'and":"ls"}' } },
  { index: 1, function: { arguments: 'th":"a"}' } },
];

describe("a stream of deltas (fault 1)", () => {
  it("puts interleaved pieces together", () => {
    expect(streamed(callPieces(...pieces)).toolCalls).toEqual(twoCalls);
    expect(turn(streamed(callPieces(...pieces))).calls.map((call) => [call.name, call.arguments])).toEqual([
      ["bash", { command: "ls" }],
      ["read_file", { path: "a" }],
    ]);
  });
  it.each<[string, object[]]>([
    [
      "id and name repeated in every piece",
      pieces.map((piece) => ({
        ...piece,
        id: piece.index === 0 ? "c1" : "c2",
        function: { ...piece.function, name: piece.index === 0 ? "bash" : "read_file" },
      })),
    ],
    [
      "names in two pieces",
      [
        { index: 0, id: "c1", function: { name: "ba" } },
        { index: 0, function: { name: "sh", arguments: "" } },
        { index: 1, id: "c2", function: { name: "read_", arguments: "" } },
        { index: 1, id: "c2", function: { name: "file" } },
        ...pieces.map(({ index, function: f }) => ({ index, function: { arguments: f.arguments } })),
      ],
    ],
    [
      "no index, ids in every piece",
      pieces.map(({ index, function: f }) => ({ id: index === 0 ? "c1" : "c2", function: f })),
    ],
    [
      "no index, one call after the other",
      [0, 1, 3, 2, 4].map((at) => ({ id: pieces[at]?.id, function: pieces[at]?.function })),
    ],
    [
      "ids that come late",
      [
        ...pieces.map(({ index, function: f }) => ({ index, function: f })),
        { index: 0, id: "c1" },
        { index: 1, id: "c2", function: { arguments: "" } },
      ],
    ],
    [
      "index 0 for all, ids tell",
      pieces.map(({ index, function: f }) => ({ index: 0, id: index === 0 ? "c1" : "c2", function: f })),
    ],
    ["the second call first", [2, 4, 0, 1, 3].map((at) => ({ ...pieces[at] }))],
  ])("%s", (_name, variant) => {
    expect(streamed(callPieces(...variant)).toolCalls).toEqual(twoCalls);
  });
  it("makes ids where none came, and none twice", () => {
    const bare = pieces.map(({ index, function: f }) => ({ index, function: f }));
    expect(streamed(callPieces(...bare)).toolCalls.map(({ id }) => id)).toEqual(["call_0", "call_1"]);
    const same = [0, 1, 2].map((index) => ({ index, id: "call_1", function: { name: "f", arguments: "{}" } }));
    const ids = streamed(callPieces(...same)).toolCalls.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(ids[0]).toBe("call_1");
  });
  it("opens a call for each name without index and id", () => {
    const calls = ["a", "b", "a"].map((name) => ({ function: { name, arguments: '{"k":1}' } }));
    expect(streamed(callPieces(...calls)).toolCalls.map(({ name }) => name)).toEqual(["a", "b", "a"]);
  });
  it("takes a doubled name for what the tools say it is", () => {
    const halves = callPieces({ index: 0, function: { name: "go" } }, { index: 0, function: { name: "go" } });
    expect(streamed(halves).toolCalls[0]?.name).toBe("go");
    expect(streamed(halves, new Set(["gogo"])).toolCalls[0]?.name).toBe("gogo");
    expect(streamed(halves, new Set(["go", "gogo"])).toolCalls[0]?.name).toBe("go");
  });
});

/** Cuts a text anywhere, empty pieces included. */
const cut = (text: string, places: readonly number[]): string[] => {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b);
  return ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end));
};
const anyText = fc.string({ unit: "binary", maxLength: 30 });
const places = fc.array(fc.nat(), { maxLength: 6 });
const anyCall = fc.record({
  name: fc.stringMatching(/^[a-z_]{1,12}$/),
  arguments: fc.oneof(
    anyText,
    fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }).map((x) => JSON.stringify(x)),
  ),
  namePlaces: places,
  argumentPlaces: places,
});

describe("any split of a stream", () => {
  it("gives the turn of the whole answer", () => {
    const answers = fc.record({
      content: anyText,
      reasoning: anyText,
      contentPlaces: places,
      calls: fc.array(anyCall, { maxLength: 4 }),
      shuffle: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
      withIndex: fc.boolean(),
      repeatIds: fc.boolean(),
    });
    fc.assert(
      fc.property(answers, ({ content, reasoning, contentPlaces, calls, shuffle, withIndex, repeatIds }) => {
        const whole = wholeAnswer(
          OpenAiMessage.parse({
            content,
            reasoning_content: reasoning,
            tool_calls: calls.map((call, i) => ({
              id: `c${i}`,
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
        );
        const queues = calls.map((call, i) => {
          const named = cut(call.name, call.namePlaces).map((name) => ({ name }));
          const argued = cut(call.arguments, call.argumentPlaces).map((text) => ({ arguments: text }));
          return [...named, ...argued].map((f, n) => ({
            ...(withIndex ? { index: i } : {}),
            ...(n === 0 || repeatIds || !withIndex ? { id: `c${i}` } : {}),
            function: f,
          }));
        });
        // Calls begin in order; their pieces come in any order among each other.
        const deltas: object[] = cut(content, contentPlaces).map((part) => ({ content: part }));
        deltas.push(...cut(reasoning, contentPlaces).map((part) => ({ reasoning: part })));
        deltas.push(...queues.map((queue) => ({ tool_calls: [queue.shift()] })));
        for (const n of shuffle) {
          const open = queues.filter((queue) => queue.length > 0);
          const next = open[n % Math.max(1, open.length)]?.shift();
          if (next !== undefined) deltas.push({ tool_calls: [next], content: null });
        }
        deltas.push(...queues.flat().map((piece) => ({ tool_calls: [piece] })));
        const names = new Set(calls.map(({ name }) => name));
        // A tool's name at the start of another's is settled as a repetition: the test above.
        fc.pre(!calls.some(({ name }) => [...names].some((other) => other !== name && name.startsWith(other))));
        const answer = streamed(deltas, names);
        expect(answer).toEqual(whole);
        expect(turn(answer)).toEqual(turn(whole));
      }),
      { numRuns: 500 },
    );
  });
});

describe("whole answers", () => {
  it.each<[string, unknown]>([
    ["null", { content: null, tool_calls: null }],
    ["absent", {}],
    ["empty", { content: "", tool_calls: [], reasoning: "" }],
    ["no parts", { content: [] }],
  ])("%s fields say nothing (fault 11)", (_name, message) => {
    const text = openAiTurnText(wholeAnswer(OpenAiMessage.parse(message)));
    expect(text).toBe("{}");
    expect(openai.parse(text, getAndFinish)).toEqual({
      content: "",
      reasoning: "",
      calls: [],
      error: null,
      repairs: [],
    });
  });
  it("keeps the text beside an empty list of calls", () => {
    const text = openAiTurnText(wholeAnswer(OpenAiMessage.parse({ content: "hi", tool_calls: [] })));
    expect(openai.parse(text, getAndFinish)).toMatchObject({ content: "hi", calls: [] });
  });
  it("reads content in parts and arguments as an object", () => {
    const message = {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
        { type: "text", text: "so" },
      ],
      tool_calls: [{ function: { name: "get", arguments: { key: "a" } } }],
    };
    expect(wholeAnswer(OpenAiMessage.parse(message))).toEqual({
      content: "so",
      reasoning: "hm",
      toolCalls: [{ id: "call_0", name: "get", arguments: '{"key":"a"}' }],
    });
  });
  it("takes a refusal for content", () => {
    expect(wholeAnswer(OpenAiMessage.parse({ content: null, refusal: "no" })).content).toBe("no");
    expect(streamed([{ refusal: "n" }, { refusal: "o" }]).content).toBe("no");
  });
  it("takes thinking out of the content where the server left it", () => {
    const thinking = { content: "<think>hm</think>\nso", reasoning: "", toolCalls: [] };
    expect(turn(thinking)).toMatchObject({ content: "so", reasoning: "hm" });
    expect(turn({ ...thinking, reasoning: "own" })).toMatchObject({
      content: "<think>hm</think>\nso",
      reasoning: "own",
    });
  });
});

describe("arguments (fault 4)", () => {
  const one = (args: string) =>
    turn({ content: "", reasoning: "", toolCalls: [{ id: "c", name: "bash", arguments: args }] });
  it.each<[string, JsonObject, number]>([
    ['{"command":"echo [1,]"}', { command: "echo [1,]" }, 0],
    ['{"command":"mkdir -p out/{a,b"}', { command: "mkdir -p out/{a,b" }, 0],
    ["", {}, 0],
    ['{"command":"ls",}', { command: "ls" }, 1],
    ["{'command': 'ls', 'background': True}", { command: "ls", background: true }, 1],
    ['{"command":"a\nb"}', { command: "a\nb" }, 1],
    ['```json\n{"command":"ls"}\n```', { command: "ls" }, 1],
  ])("%s runs as meant", (args, expected, repairs) => {
    const parsed = one(args);
    expect(parsed).toMatchObject({ error: null, calls: [{ name: "bash", arguments: expected }] });
    expect(parsed.repairs).toHaveLength(repairs);
  });
  it.each([
    ['{"path":"a.py","content":"get("K")"}', /bash: expected , after a value, found "K/],
    ['{"command":"ls"} and that is all', /expected nothing after the JSON value, found "and that/],
    ['{"path":"a","range":\\n[1,2]}', /expected a JSON value, found "\\\\n/],
    ['{"path":"a.md","content":"# Ti', /a string is not closed/],
    ["[1]", /must be a JSON object/],
    ["null", /must be a JSON object/],
  ])("%s is answered with the complaint", (args, message) => {
    expect(one(args)).toMatchObject({ calls: [], error: expect.stringMatching(message) });
  });
  it("never lets one bad call hide the good ones", () => {
    const toolCalls = [{ id: "x", name: "get", arguments: "{" }, ...twoCalls, { id: "y", name: "", arguments: "" }];
    const parsed = turn({ content: "", reasoning: "", toolCalls });
    expect(parsed.calls.map(({ name }) => name)).toEqual(["bash", "read_file", ""]);
    expect(parsed.error).toMatch(/^get: /);
  });
  it("takes any other text for content", () => {
    for (const text of ['{"tool_calls": [', '{"a": 1}', '{"content": 5}', "[]", '{} {"x', '{"tool_calls": "x"}']) {
      expect(openai.parse(text, getAndFinish)).toMatchObject({ content: text, calls: [], error: null });
    }
  });
});
