/** The whole loop in every dialect: whatever a model writes as a call is an observation, never an internal error. */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { anyTurn } from "../../testing/any-turn.ts";
import { quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { demonstrationRows } from "./demonstrations.ts";
import { type DialectName, dialects } from "./registry.ts";
import { runRollout } from "./run-rollout.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});
const names = Object.keys(dialects) as DialectName[];
const tools: readonly ToolSpec[] = [
  {
    name: "bash",
    description: "Runs a command",
    parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  },
  {
    name: "finish",
    description: "Ends",
    parameters: { properties: { answer: { type: "string" } }, required: ["answer"] },
  },
];

async function run(name: DialectName, policy: readonly string[]) {
  const dialect = dialects[name];
  const spec = rolloutSpec(tokenizer, { maxTurns: policy.length, parseRetries: 20 }, { dialect, tools });
  const ports = scriptedRollout({
    tokenizer,
    policy,
    tools: {
      bash: (call) => ({ output: `ran ${String(call.arguments.command)}` }),
      finish: (call) => ({ output: "", finalAnswer: String(call.arguments.answer) }),
    },
  });
  const end = await runRollout(spec, null, ports, new AbortController().signal);
  const { segments, turns } = ports.stored();
  const seen = segments.filter(({ origin }) => origin !== "sampled").map(({ tokens }) => tokenizer.decode(tokens));
  return { end, turns, seen: seen.join(""), ran: ports.toolCalls.map((call) => [call.name, call.arguments]) };
}

describe.each(names)("a rollout in %s", (name) => {
  const write = (tool: string, args: JsonObject) => dialects[name].renderCalls([{ name: tool, arguments: args }]);
  const finish = write("finish", { answer: "7" });

  it("answers made-up tools and wrong arguments, and goes on (fault 7)", async () => {
    const made: [string, JsonObject][] = [
      ["search_web", { query: "x" }],
      ["Bash", { command: "ls" }],
      ["x".repeat(300), {}],
      ["bash", { cmd: "ls" }],
      ["bash", name === "qwen-xml" || name === "skyrl" ? {} : { command: 5 }],
      ["bash", {}],
      ["functions.bash", { command: "ls" }],
      ["bash", { command: "ls", sql: null }],
    ];
    const { end, seen, ran, turns } = await run(name, [...made.map(([tool, args]) => write(tool, args)), finish]);
    expect(end).toMatchObject({ ending: "finish_tool" });
    expect(ran.slice(0, -1)).toEqual(
      name === "qwen-xml" || name === "skyrl"
        ? [["bash", { command: "ls" }]]
        : [
            ["bash", { command: "ls" }],
            ["bash", { command: "ls" }],
          ],
    );
    for (const said of [
      'no tool named "search_web"',
      'no tool named "Bash"',
      "the tools are: bash, finish",
      "command: missing",
    ])
      expect(seen).toContain(said);
    const notes = turns.flatMap((turn) => turn.notes.map(({ kind, message }) => `${kind} ${message}`));
    expect(notes).toContain("repair bash: the name functions.bash was read as bash");
  });

  it("runs the good call beside a bad one, and shows the complaint", async () => {
    const whole = write("bash", { command: "pwd" });
    const cut = whole.slice(0, whole.indexOf("pwd") + 2);
    const good = { id: "b", name: "finish", arguments: '{"answer": "7"}' };
    const bad = { id: "a", name: "bash", arguments: '{"command": "pw' };
    const [alone, both] =
      name === "openai"
        ? [JSON.stringify({ tool_calls: [bad] }), JSON.stringify({ tool_calls: [bad, good] })]
        : [cut, `${cut}\n${finish}`];
    const { end, seen, ran, turns } = await run(name, [alone, "just words", both]);
    expect(end).toMatchObject({ ending: "finish_tool" });
    expect(ran).toEqual([["finish", { answer: "7" }]]);
    expect(seen).toContain("no tool call found");
    expect(seen).toContain("could not be read");
    expect(turns.map(({ parseError }) => parseError !== null)).toEqual([true, true, true]);
  });

  it("shows an example call of any tool, whatever its names", async () => {
    const odd = { name: "a<b>\n", description: "", parameters: { properties: {}, required: ["x y", "<z>", '"'] } };
    const dialect = dialects[name];
    const spec = rolloutSpec(tokenizer, { maxTurns: 1 }, { dialect, tools: [odd] });
    const ports = scriptedRollout({ tokenizer, policy: ["words"] });
    expect(await runRollout(spec, null, ports, new AbortController().signal)).toMatchObject({ ending: "turn_limit" });
    expect(ports.stored().turns[0]?.parseError).toContain("a<b>");
  });

  it("holds the same tokens as a demonstration of it", async () => {
    const turns = [
      { calls: [{ name: "bash", arguments: { command: "ls\n-la" } }], outputs: ["ran ls\n-la"] },
      { calls: [{ name: "finish", arguments: { answer: "7" } }], outputs: [] },
    ];
    const dialect = dialects[name];
    const spec = rolloutSpec(tokenizer, { describeTools: true }, { dialect, tools });
    const ports = scriptedRollout({
      tokenizer,
      policy: turns.map(({ calls }) => dialect.renderCalls(calls)),
      tools: {
        bash: (call) => ({ output: `ran ${String(call.arguments.command)}` }),
        finish: (call) => ({ output: "", finalAnswer: String(call.arguments.answer) }),
      },
    });
    await runRollout(spec, null, ports, new AbortController().signal);
    const [row] = demonstrationRows(
      { messages: [{ role: "user", content: "find a" }], turns },
      { tokenizer, dialect, tools, agent: spec.agent },
    );
    expect(row?.tokens).toEqual(ports.stored().segments.flatMap((segment) => [...segment.tokens]));
  });
});

describe("any turn", () => {
  it.each(names)("in %s ends as the loop's own business", async (name) => {
    await fc.assert(
      fc.asyncProperty(anyTurn, fc.nat(), async (turn, cut) => {
        const plain = { ...turn, calls: turn.calls.map((call) => ({ ...call, arguments: {} })) };
        const text = dialects[name].renderTurn(plain);
        const { end, turns } = await run(name, [text, text.slice(0, cut % (text.length + 1)), text]);
        expect(["turn_limit", "no_call", "loop", "context_full"]).toContain(end.ending);
        for (const { notes } of turns) for (const { message } of notes) expect(message.length).toBeLessThanOrEqual(500);
      }),
      { numRuns: 25 },
    );
  });
});
