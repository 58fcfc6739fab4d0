/** Conversations that templates and tokenizers get wrong first: calls, several results, thinking, every kind of text, nothing. */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { JsonObject } from "@rolldeck/contracts/segments";

export const tools: readonly ToolSpec[] = [
  {
    name: "get",
    description: 'Looks a key up. Größe ≤ 5 „Zeichen“, "quoted"',
    parameters: {
      type: "object",
      properties: {
        key: { type: "string", description: "What to look up", enum: ["a", "é", "鍵"] },
        count: { type: "integer", default: -1 },
        deep: { type: "object", properties: { ratio: { type: "number", minimum: 0.00001 } } },
        either: { type: ["string", "null"] },
      },
      required: ["key"],
    },
  },
  { name: "finish", description: "", parameters: { type: "object", properties: {} } },
];

const user = (content: string): ChatMessage => ({ role: "user", content });
const says = (content: string, reasoning?: string): ChatMessage => ({
  role: "assistant",
  content,
  ...(reasoning === undefined ? {} : { reasoning }),
});
const calls = (content: string, ...args: JsonObject[]): ChatMessage => ({
  role: "assistant",
  content,
  toolCalls: args.map((call, index) => ({
    id: `c0000000${index}`,
    name: index === 1 ? "finish" : "get",
    arguments: call,
  })),
});
const result = (content: string, index = 0): ChatMessage => ({
  role: "tool",
  content,
  toolCallId: `c0000000${index}`,
  name: index === 1 ? "finish" : "get",
});

export const texts: readonly string[] = [
  "plain words",
  " leading and trailing ",
  "\n\nlines\n\n\n",
  "tabs\tand\r\nreturns\r",
  "def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))  # 3\n",
  '{"a": [1, 2.50, -3e-7, true, null], "b": "\\"\\\\\\n"}',
  "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 é é ﬁ ①",
  "你好，世界。こんにちは 한국어 ไทย",
  "مرحبا עברית \u202eabc\u202c",
  "zero\u200bwidth \ufeffmark \u2028line\u00a0space \u0085next",
  "12345678901234567890 3.14159 1,000,000",
  "don't you'LL we've I'm they'd it's",
  "<think>not a thought</think> <tool_call> </tool_response> [/INST",
  "𐀀𐏿 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \u0000\u0007\u001b[31m",
  "a".repeat(300),
  "!!!???...,,,---===<<<>>>",
  "  ",
  "",
];

export const conversations: Readonly<Record<string, readonly ChatMessage[]>> = {
  plain: [user("hello")],
  system: [{ role: "system", content: "You are brief." }, user("hello"), says("hi"), user("bye")],
  answered: [user("hello"), says("hi there")],
  call: [user("find a"), calls("", { key: "a" }), result("b")],
  wordsAndCalls: [
    { role: "system", content: "Use tools." },
    user("find a"),
    calls("I look both up.", { key: "a", count: 2 }, {}),
    result("b\n"),
    result("", 1),
    says("It is b."),
    user("and c?"),
    calls("", { key: "c" }),
    result("none"),
  ],
  thinking: [
    user("find a"),
    { ...calls("Looking.", { key: "a" }), reasoning: "The user wants a.\n\nI look." },
    result("b"),
    says("It is b.", "That was easy."),
    user("why?"),
    says("Because.", "\nHm.\n"),
  ],
  thinkingInContent: [user("q"), says("<think>\nhm\n</think>\n\nanswer"), user("again")],
  arguments: [
    user("go"),
    calls("", {
      text: 'quote " back \\ slash / new\nline \t tab \u0007 bell \u007f del',
      unicode: "é 😀 鍵 \u2028",
      numbers: [0, -1, 1.5, 1e-7, 0.00005, 1e21, 123456789012],
      deep: { list: [true, false, null, {}, []], empty: "" },
    }),
    result("ok"),
  ],
  empty: [user(""), says(""), user("  "), says("\n"), user("x")],
  emptyResult: [user("go"), calls("", {}), result("")],
  ...Object.fromEntries(texts.map((text, index) => [`text${index}`, [user(text), says(text), user(`${text}?`)]])),
};
