import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, describe, expect, it } from "vitest";
import { getAndFinish, quickstartFolder } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { dialects } from "./registry.ts";
import { turnText } from "./turn-text.ts";

let plain: Tokenizer;
let thinking: Tokenizer;
beforeAll(async () => {
  plain = await loadTokenizer(quickstartFolder());
  // A template that ends every prompt inside an open thinking mark.
  thinking = {
    ...plain,
    stopTokens: plain.stopTokens,
    encode: (text) => plain.encode(text),
    decode: (tokens, options) => plain.decode(tokens, options),
    tokenTexts: (tokens) => plain.tokenTexts(tokens),
    render: (messages, options) => [...plain.render(messages, options), ...plain.encode("<think>\n")],
  };
});

const read = (tokenizer: Tokenizer, text: string) => {
  const tokens = [...tokenizer.encode(text), ...tokenizer.stopTokens.slice(0, 1)];
  const { calls, reasoning, content } = dialects.pythonic.parse(
    turnText(tokenizer, dialects.pythonic, tokens),
    getAndFinish,
  );
  return { calls: calls.length, reasoning, content };
};

describe("a turn whose prompt opened the thinking", () => {
  it("is all thinking until the mark closes", () => {
    expect(read(thinking, 'I could [get(key="a")]')).toEqual({
      calls: 0,
      reasoning: 'I could [get(key="a")]',
      content: "",
    });
    expect(read(thinking, 'hm\n</think>\n\n[get(key="a")]')).toEqual({ calls: 1, reasoning: "hm", content: "" });
    expect(read(thinking, '<think>hm</think>[get(key="a")]')).toEqual({ calls: 1, reasoning: "hm", content: "" });
  });
  it("is an answer with other templates", () => {
    expect(read(plain, 'I could [get(key="a")]')).toEqual({ calls: 1, reasoning: "", content: "I could" });
    expect(read(plain, 'hm\n</think>\n\n[get(key="a")]')).toEqual({ calls: 1, reasoning: "hm", content: "" });
  });
  it("is left alone where an adapter put it together", () => {
    const text = '{"content":"so"}';
    const tokens = thinking.encode(text);
    expect(turnText(thinking, dialects.openai, tokens)).toBe(text);
  });
});
