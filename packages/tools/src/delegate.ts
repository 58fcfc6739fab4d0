/**
 * Hands a part of the work to a sub-agent: a fresh context that holds only the task's text, the caller's tools, and one answer
 * back. The loop runs it; this file only says with what.
 */
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

const name = "delegate";
const defaultTurns = 10;

export const delegate = defineTool({
  name,
  description: "Let a helper do one part of the work. It sees only what you write here and gives back its answer.",
  arguments: z.strictObject({
    task: z.string().trim().min(1).describe("What to do and what to answer; everything the helper needs to know"),
    max_turns: z.int().min(1).max(100).default(defaultTurns).describe("Turns the helper may take"),
  }),
  // Its own calls are committed one by one, so an open delegation is gone on with, not begun again.
  idempotent: true,
  call: async () => {
    const message = "helpers can't be started here";
    return { output: message, error: { code: "no_helpers", message } };
  },
  delegate: ({ task, max_turns: maxTurns }, { agent }) => ({
    messages: [{ role: "user", content: task }],
    tools: (agent.tools ?? []).filter((tool) => tool !== name),
    maxTurns: Math.min(maxTurns, Math.max(1, agent.maxTurns - agent.turn)),
  }),
});
