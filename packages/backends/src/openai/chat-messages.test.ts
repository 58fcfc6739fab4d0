/** Fault 11, the request's side: absent, null, empty and blank values of every field. */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import fc from "fast-check";
import { expect, test } from "vitest";
import { chatMessages } from "./chat-messages.ts";

const nullStyle = { emptyContent: "null", reasoningField: null } as const;
const emptyStyle = { emptyContent: "empty", reasoningField: "reasoning_content" } as const;
const call = { id: "c1", name: "bash", arguments: { command: "ls" } };

test('an assistant turn that only calls says null or "", as the endpoint wants it; its empty result is sent', () => {
  const history: ChatMessage[] = [
    { role: "assistant", content: "", toolCalls: [call], reasoning: "hm" },
    { role: "tool", content: "", toolCallId: "c1" },
  ];
  const tool = { role: "tool", content: "", tool_call_id: "c1" };
  const calls = [{ id: "c1", type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } }];
  expect(chatMessages(history, nullStyle)).toEqual([{ role: "assistant", content: null, tool_calls: calls }, tool]);
  expect(chatMessages(history, emptyStyle)).toEqual([
    { role: "assistant", content: "", tool_calls: calls, reasoning_content: "hm" },
    tool,
  ]);
});

test("an empty list of calls is left out, and the text is there", () => {
  const sent = chatMessages([{ role: "assistant", content: "hi", toolCalls: [] }], nullStyle);
  expect(sent).toEqual([{ role: "assistant", content: "hi" }]);
  expect(chatMessages([{ role: "assistant", content: "" }], nullStyle)).toEqual([{ role: "assistant", content: "" }]);
});

test("whatever a conversation holds: no undefined, no empty list, no half of a surrogate pair, nothing made up", () => {
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", " ", "\ud83d", "a\udc00b", "\\ud800", "🙂"));
  const toolCalls = fc.option(fc.array(fc.record({ id: text, name: text, arguments: fc.dictionary(text, text) })), {
    nil: undefined,
  });
  const role = fc.constantFrom("system" as const, "user" as const, "assistant" as const, "tool" as const);
  const message = fc.record({
    role,
    content: text,
    toolCalls,
    reasoning: fc.option(text, { nil: undefined }),
    toolCallId: text,
  });
  fc.assert(
    fc.property(fc.array(message), fc.constantFrom(nullStyle, emptyStyle), (history, style) => {
      const sent = chatMessages(history, style);
      expect(sent.length).toBe(history.length);
      const json = JSON.stringify(sent);
      expect(json).not.toMatch(/\p{Surrogate}/u);
      // A backslash that stands for itself is doubled: an odd one before "u" is an escape.
      expect(json).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/i);
      for (const [at, wire] of sent.entries()) {
        expect(Object.values(wire)).not.toContain(undefined);
        if ("tool_calls" in wire) {
          expect(wire.tool_calls?.length).toBe(history[at]?.toolCalls?.length);
          for (const made of wire.tool_calls ?? []) JSON.parse("function" in made ? made.function.arguments : "");
        }
      }
    }),
  );
});

test("text that only spells a half pair is left as it is: code, JSON and what tools print are full of them", () => {
  const spelled = String.raw`{"face": "\ud83d\ude00", "path": "C:\udd1e", "\\ud800": 1}`;
  const history: ChatMessage[] = [
    { role: "user", content: spelled },
    {
      role: "assistant",
      content: spelled,
      reasoning: spelled,
      toolCalls: [{ ...call, arguments: { command: spelled } }],
    },
    { role: "tool", content: spelled, toolCallId: "c1" },
  ];
  const sent = chatMessages(history, emptyStyle);
  expect(sent.map(({ content }) => content)).toEqual([spelled, spelled, spelled]);
  expect(sent[1]).toMatchObject({
    reasoning_content: spelled,
    tool_calls: [{ function: { arguments: JSON.stringify({ command: spelled }) } }],
  });
});
