import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { expect, it } from "vitest";
import { getAndFinish, quickstartFolder } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { hermes } from "./dialects/hermes.ts";
import { pythonic } from "./dialects/pythonic.ts";
import { openingTokens } from "./opening-tokens.ts";
import { firstPrompt, type Opening } from "./render-conversation.ts";

it("gives every opening its own tokens, and renders the same one once while it is in use", async () => {
  const loaded = await loadTokenizer(quickstartFolder());
  let renders = 0;
  const tokenizer: Tokenizer = {
    vocabSize: loaded.vocabSize,
    stopTokens: loaded.stopTokens,
    encode: (text) => loaded.encode(text),
    decode: (tokens, options) => loaded.decode(tokens, options),
    tokenTexts: (tokens) => loaded.tokenTexts(tokens),
    render: (messages, options) => {
      renders += 1;
      return loaded.render(messages, options);
    },
  };
  const opening = (content: string, more: Partial<Opening> = {}): Opening => ({
    messages: [{ role: "user", content }],
    tools: getAndFinish,
    dialect: pythonic,
    describeTools: true,
    ...more,
  });
  const variants = [
    opening("a"),
    opening("b"),
    opening("a", { describeTools: false }),
    opening("a", { dialect: hermes }),
    opening("a", { tools: getAndFinish.slice(1) }),
    opening("a", { messages: [{ role: "system", content: "a" }] }),
  ];
  const check = () => {
    for (const variant of variants)
      expect([...openingTokens(tokenizer, variant)]).toEqual(firstPrompt(loaded, variant));
  };
  check();
  const once = renders;
  check();
  expect(renders).toBe(once);
  // Others push it out: it is rendered anew, as right as before.
  for (let n = 0; n < 64; n++) openingTokens(tokenizer, opening(`other ${n}`));
  const full = renders;
  check();
  expect(renders).toBe(full + variants.length);
});
