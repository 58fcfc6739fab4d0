/**
 * The task of the agent benchmark: a first prompt of a given length, a tool that answers 50 characters at once, and a verifier
 * that reads nothing. With the quickstart model every character is a token.
 */
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { z } from "zod";

/** Tokens of an observation's content. */
const observationTokens = 50;

const State = z.object({ promptCharacters: z.int() });

/** @param promptCharacters of the first message */
export function echoTask(promptCharacters: number): Task {
  const instance: Task["instance"] = (split, index) => ({
    instanceId: `echo-${split}-${index}`,
    split,
    index,
    state: { promptCharacters },
  });
  return {
    name: `echo-${promptCharacters}`,
    description: "Benchmark",
    sandbox: "none",
    tools: ["echo", "finish"],
    defaults: { maxTurns: 1000, maxContextTokens: 65_536 },
    size: () => null,
    instance,
    messages: ({ index, state }) => {
      const beginning = `task ${index}: `;
      const length = State.parse(state).promptCharacters - beginning.length;
      return [{ role: "user", content: beginning + "lorem ipsum ".repeat(Math.ceil(length / 12)).slice(0, length) }];
    },
    verify: async () => ({ reward: 0, success: false, parts: { none: 0 }, notes: null }),
  };
}

export const echo: Tool = {
  name: "echo",
  description: "Answers",
  parameters: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  },
  idempotent: true,
  call: async ({ text }) => ({ output: String(text).padEnd(observationTokens, ".").slice(0, observationTokens) }),
};
