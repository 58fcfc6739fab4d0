/** The conversations that a chat template is tried on before a run may train, from the plainest to what agents really have. */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";

export interface Probe {
  readonly name: string;
  readonly messages: readonly ChatMessage[];
  /**
   * A template that refuses it: `error` = a rollout would fail, `warning` = rollouts never render it as a whole, but so it can't be
   * compared either, null = the loop does without.
   */
  readonly refusal: "error" | "warning" | null;
}

export const probeTool: ToolSpec = {
  name: "look_up",
  description: "Looks a key up",
  parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
};

const system: ChatMessage = { role: "system", content: "Answer briefly." };
const user = (content: string): ChatMessage => ({ role: "user", content });
const says = (content: string): ChatMessage => ({ role: "assistant", content });

/** @param callsByTemplate the template writes calls itself; else they are part of the answer's text, as they are sampled */
export function templateProbes(dialect: Dialect, callsByTemplate: boolean): Probe[] {
  const calls = (keys: readonly string[], from: number, reasoning?: string): ChatMessage => {
    const named = keys.map((key) => ({ name: probeTool.name, arguments: { key } }));
    const thought = reasoning === undefined ? {} : { reasoning };
    if (!callsByTemplate) return { role: "assistant", content: dialect.renderCalls(named), ...thought };
    return {
      role: "assistant",
      content: "",
      toolCalls: named.map((call, at) => ({ id: callId(from + at), ...call })),
      ...thought,
    };
  };
  const result = (content: string, at: number): ChatMessage =>
    dialect.resultRole === "user"
      ? user(content)
      : { role: "tool", content, toolCallId: callId(at), name: probeTool.name };
  const strange = 'é 😀 你好\n\n  \ttabs, "quotes" and \\ <tags>';
  return [
    { name: "question and answer", refusal: "error", messages: [user("hello"), says("hi"), user("more")] },
    {
      name: "system message",
      refusal: "warning",
      messages: [system, user("hello"), says("hi"), user("a"), says("b"), user("c")],
    },
    { name: "tool call", refusal: "error", messages: [system, user("find a"), calls(["a"], 0), result("1", 0)] },
    {
      name: "several calls, then words",
      refusal: "warning",
      messages: [
        system,
        user("find both"),
        calls(["a", "b"], 0),
        result("1", 0),
        result("2", 1),
        says("1 and 2"),
        user("more"),
      ],
    },
    {
      name: "many turns",
      refusal: "warning",
      messages: [user("follow"), ...[0, 1, 2, 3].flatMap((at) => [calls([`k${at}`], at), result(`k${at + 1}`, at)])],
    },
    {
      name: "hint after a result",
      refusal: null,
      messages: [system, user("find a"), calls(["a"], 0), result("1", 0), user("two turns left")],
    },
    { name: "every kind of text", refusal: "error", messages: [user(strange), says(strange.trim()), user(strange)] },
    { name: "empty messages", refusal: "warning", messages: [user("go"), says(""), user("go on")] },
    { name: "empty result", refusal: "error", messages: [user("find a"), calls(["a"], 0), result("", 0)] },
    {
      name: "thinking before an answer",
      refusal: null,
      messages: [user("why"), { ...says("so"), reasoning: "a quiet thought" }, user("and")],
    },
    {
      name: "thinking before calls",
      refusal: null,
      messages: [
        user("find a"),
        calls(["a"], 0, "a first thought"),
        result("1", 0),
        calls(["b"], 1, "a second thought"),
        result("2", 1),
      ],
    },
    {
      name: "hint after thinking",
      refusal: null,
      messages: [user("find a"), calls(["a"], 0, "a quiet thought"), result("1", 0), user("two turns left")],
    },
  ];
}

/** Nine letters and digits, as the strictest family asks for. */
const callId = (at: number): string => `probe000${at}`;
