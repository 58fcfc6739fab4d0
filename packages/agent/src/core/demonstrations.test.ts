import type { Demonstration } from "@rolldeck/contracts/ports/task";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { demonstrationDatum, demonstrationTokens } from "./demonstrations.ts";
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
      const agent = { describeTools, maxOutputBytes: 128 };
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
      const { tokens, mask } = demonstrationTokens(demonstration, {
        tokenizer,
        dialect,
        tools: spec.tools,
        agent: spec.agent,
      });
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
    const datum = demonstrationDatum(short, { tokenizer, dialect: spec.dialect, tools: spec.tools, agent: spec.agent });
    expect(datum.inputs).toEqual([256, 113, 259, 257, ...tokenizer.encode("[f()]")]);
    expect(datum.targets).toEqual([113, 259, 257, ...tokenizer.encode("[f()]"), 259]);
    expect(datum.weights).toEqual([0, 0, 0, 1, 1, 1, 1, 1, 1]);
    expect(datum.logprobs.every((value) => value === 0) && datum.advantages.every((value) => value === 0)).toBe(true);
  });
});
