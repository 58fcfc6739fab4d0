import type { Demonstration } from "@rolldeck/contracts/ports/task";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { demonstrationDatums, demonstrationRows } from "./demonstrations.ts";
import { dialects } from "./registry.ts";
import { runRollout } from "./run-rollout.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

const demonstration: Demonstration = {
  messages: [{ role: "user", content: "find a" }],
  turns: [
    { calls: [{ name: "get", arguments: { key: "a" } }], outputs: ["b"] },
    {
      calls: [
        { name: "get", arguments: { key: "b" } },
        { name: "get", arguments: { key: "é\u0000" } },
      ],
      outputs: ["7\u0000<|end|>", "x".repeat(300)],
    },
    { calls: [{ name: "finish", arguments: { answer: "7" } }], outputs: [] },
  ],
};

describe.each(["pythonic", "hermes"] as const)("a demonstration in %s", (name) => {
  it.each([true, false])(
    "holds the tokens of a rollout that samples it (tools described: %s)",
    async (describeTools) => {
      const dialect = dialects[name];
      const agent = { describeTools, maxOutputBytes: 128, maxOutputTokens: null };
      const spec = rolloutSpec(tokenizer, agent, { dialect, messages: demonstration.messages });
      const outputs = demonstration.turns.flatMap((turn) => turn.outputs);
      const ports = scriptedRollout({
        tokenizer,
        policy: (turn) => dialect.renderCalls(demonstration.turns[turn]?.calls ?? []),
        tools: {
          get: () => ({ output: outputs.shift() ?? "" }),
          finish: (call) => ({ output: "", finalAnswer: String(call.arguments.answer) }),
        },
      });
      const end = await runRollout(spec, null, ports, new AbortController().signal);
      expect(end.ending).toBe("finish_tool");
      const { segments } = ports.stored();
      const format = { tokenizer, dialect, tools: spec.tools, agent: spec.agent };
      const [{ tokens, mask } = { tokens: [], mask: [] }, ...more] = demonstrationRows(demonstration, format);
      expect(more).toEqual([]);
      expect(tokens).toEqual(segments.flatMap((segment) => [...segment.tokens]));
      expect(mask).toEqual(
        segments.flatMap((segment) => segment.tokens.map(() => (segment.origin === "sampled" ? 1 : 0))),
      );
    },
  );
});

describe("its training row", () => {
  it("weighs exactly the assistant's tokens, end token included, aligned with the targets", () => {
    const spec = rolloutSpec(tokenizer);
    const short: Demonstration = {
      messages: [{ role: "user", content: "q" }],
      turns: [{ calls: [{ name: "f", arguments: {} }], outputs: [] }],
    };
    const format = { tokenizer, dialect: spec.dialect, tools: spec.tools, agent: spec.agent };
    const [datum, ...more] = demonstrationDatums(short, format);
    if (datum === undefined) throw new Error("no datum");
    expect(more).toEqual([]);
    expect(datum.inputs).toEqual([256, 113, 259, 257, ...tokenizer.encode("[f()]")]);
    expect(datum.targets).toEqual([113, 259, 257, ...tokenizer.encode("[f()]"), 259]);
    expect(datum.weights).toEqual([0, 0, 0, 1, 1, 1, 1, 1, 1]);
    expect(datum.logprobs.every((value) => value === 0) && datum.advantages.every((value) => value === 0)).toBe(true);
  });

  it("ends where a turn restarts the context; the next begins with the new messages, and no answer of the tool is in either", () => {
    const spec = rolloutSpec(tokenizer);
    const restarting: Demonstration = {
      messages: [{ role: "user", content: "one" }],
      turns: [
        { calls: [{ name: "f", arguments: {} }], outputs: ["seen"] },
        { calls: [{ name: "g", arguments: {} }], outputs: ["gone"], restart: [{ role: "user", content: "two" }] },
        { calls: [{ name: "h", arguments: {} }], outputs: [] },
      ],
    };
    const format = { tokenizer, dialect: spec.dialect, tools: [], agent: { ...spec.agent, describeTools: false } };
    const rows = demonstrationRows(restarting, format);
    expect(rows.map(({ tokens }) => tokenizer.decode(tokens, { skipSpecial: false }))).toEqual([
      "<|user|>one<|end|><|assistant|>[f()]<|end|><|tool|>seen<|end|><|assistant|>[g()]<|end|>",
      "<|user|>two<|end|><|assistant|>[h()]<|end|>",
    ]);
    for (const { tokens, mask } of rows) expect(mask).toHaveLength(tokens.length);
    expect(
      demonstrationDatums(restarting, format).map(({ weights }) => weights.filter((weight) => weight === 1).length),
    ).toEqual([tokenizer.encode("[f()][g()]").length + 2, tokenizer.encode("[h()]").length + 1]);
  });
});
