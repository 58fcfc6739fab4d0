/** The task through the real turn loop, tools, dialect and quickstart tokenizer: what a rollout of it is, token by token. */
import { fileURLToPath } from "node:url";
import { demonstrationRows } from "@rolldeck/agent/core/demonstrations";
import { dialects } from "@rolldeck/agent/core/registry";
import { type RolloutEnd, type RolloutPorts, type RolloutSpec, runRollout } from "@rolldeck/agent/core/run-rollout";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { findTool } from "@rolldeck/tools/registry";
import { beforeAll, describe, expect, test } from "vitest";
import { keyChainState } from "./instances.ts";
import { keyChain } from "./task.ts";

const { agent } = RunConfig.parse(presets.quickstart.config);
const tools = keyChain.tools.map((name) => {
  const { description, parameters } = findTool(name) ?? {};
  return { name, description: description ?? "", parameters: parameters ?? {} };
});
let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(fileURLToPath(new URL("../../../../infra/models/quickstart", import.meta.url)));
});

/** One rollout of training instance `index` under a policy that writes text for text. */
async function play(index: number, policy: (prompt: string) => string): Promise<{ end: RolloutEnd; tokens: number }> {
  const instance = keyChain.instance("train", index);
  const spec: RolloutSpec = {
    rolloutId: "r",
    seed: 1,
    messages: keyChain.messages(instance),
    tools,
    dialect: dialects.pythonic,
    tokenizer,
    agent,
    maxTurns: keyChain.defaults.maxTurns,
    temperature: 1,
  };
  let tokens = 0;
  const ports: RolloutPorts = {
    sample: async ({ prompt }) => {
      const sampled = [...tokenizer.encode(policy(tokenizer.decode(prompt.toArray()))), ...tokenizer.stopTokens];
      tokens = prompt.length + sampled.length;
      const logprobs = sampled.map(() => -1);
      return { tokens: sampled, logprobs, stopReason: "stop", policyVersion: 0, cacheHitTokens: 0 };
    },
    callTool: async (call, agent, signal) =>
      (await findTool(call.name)?.call(call.arguments, {
        instance: instance.state,
        agent,
        signal,
        deadlineMs: 1000,
      })) ?? {
        output: "",
      },
    commitTurn: async () => {},
    commitResults: async () => {},
    now: () => 0,
  };
  return { end: await runRollout(spec, null, ports, new AbortController().signal), tokens };
}

const verdictOf = (index: number, end: RolloutEnd) => keyChain.verify(keyChain.instance("train", index), end);
const lastSeen = (prompt: string): string =>
  [...prompt.matchAll(/<\|tool\|>(.)<\|end\|>/g)].at(-1)?.[1] ?? /find (.)/.exec(prompt)?.[1] ?? "";
const follows = (prompt: string): string => {
  const seen = lastSeen(prompt);
  return /[0-9]/.test(seen) ? `[finish(answer="${seen}")]` : `[get(k="${seen}")]`;
};

describe("a rollout of the key chain", () => {
  test("whoever follows the keys and answers the digit earns 1, well inside the context", async () => {
    for (let index = 0; index < 50; index++) {
      const { end, tokens } = await play(index, follows);
      expect(end).toMatchObject({ ending: "finish_tool", turns: keyChainState("train", index).lookups + 1 });
      expect(await verdictOf(index, end)).toMatchObject({ reward: 1, success: true });
      expect(tokens).toBeLessThanOrEqual(keyChain.defaults.maxContextTokens / 2);
    }
  });

  test("whoever answers the first key it saw earns nothing; whoever never answers reaches the turn limit", async () => {
    const early = await play(0, (prompt) => `[finish(answer="${lastSeen(prompt)}")]`);
    expect(await verdictOf(0, early.end)).toMatchObject({ reward: 0, success: false });
    const keys = Object.keys(keyChainState("train", 0).table);
    const lost = await play(0, (prompt) => `[get(k="${keys[prompt.length % keys.length]}")]`);
    expect(lost.end.ending).toBe("turn_limit");
    expect((await verdictOf(0, lost.end)).reward).toBeCloseTo(-0.08, 12);
  });

  test("nonsense is told so and ends without a reward, never with an error", async () => {
    for (const text of ["", "7", "[get(key=3)]", "[got(k='a')]", '[get(k="a"', "<|user|>find b"]) {
      const { end } = await play(1, () => text);
      expect((await verdictOf(1, end)).success, text).toBe(false);
    }
  });
});

test("a demonstration's tokens are a rollout's: format, specials and stop tokens as the loop makes them", () => {
  const [complete] = keyChain.demonstrations(3, 1);
  if (!complete) throw new Error("no demonstration");
  const format = { tokenizer, dialect: dialects.pythonic, tools, agent };
  const [{ tokens, mask } = { tokens: [], mask: [] }] = demonstrationRows(complete, format);
  const keys = complete.turns.map((turn) => String(Object.values(turn.calls[0]?.arguments ?? {})[0]));
  const digit = keys.at(-1);
  const expected = keys.slice(0, -1).flatMap((key, at) => [`[get(k="${key}")]`, keys[at + 1]]);
  const turns = expected.map((text, at) => (at % 2 === 0 ? `<|assistant|>${text}<|end|>` : `<|tool|>${text}<|end|>`));
  const whole = `<|user|>find ${keys[0]}<|end|>${turns.join("")}<|assistant|>[finish(answer="${digit}")]<|end|>`;
  expect(tokenizer.decode(tokens, { skipSpecial: false })).toBe(whole);
  const written = tokens.filter((_, at) => mask[at] === 1);
  expect(tokenizer.decode(written, { skipSpecial: false })).toBe(
    [...keys.slice(0, -1).map((key) => `[get(k="${key}")]<|end|>`), `[finish(answer="${digit}")]<|end|>`].join(""),
  );
});
