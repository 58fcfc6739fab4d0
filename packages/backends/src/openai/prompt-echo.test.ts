import fc from "fast-check";
import { expect, test } from "vitest";
import { takeOutEcho } from "./prompt-echo.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const ids = fc.array(fc.nat(200_000), { maxLength: 40 });

test("the echo is compared and left out, whatever stands around it", () => {
  const around = fc.record({ text: fc.string(), tokens: ids, blank: fc.boolean() });
  fc.assert(
    fc.property(ids, ids, around, (sent, echoed, { text, tokens, blank }) => {
      const answer = { text, choices: [{ prompt_token_ids: echoed, token_ids: tokens, text }] };
      const json = blank ? JSON.stringify(answer, null, 1) : JSON.stringify(answer);
      const found = takeOutEcho(bytes(json), () => bytes(JSON.stringify(sent)));
      expect(found.samePrompt).toBe(JSON.stringify(sent) === JSON.stringify(echoed));
      expect(JSON.parse(found.text)).toEqual({ text, choices: [{ prompt_token_ids: null, token_ids: tokens, text }] });
    }),
  );
});

test("an answer without one is left alone, also when its text speaks of it", () => {
  const answer = JSON.stringify({ text: 'he said "prompt_token_ids":[1,2]', choices: [] });
  expect(takeOutEcho(bytes(answer), () => bytes("[1]"))).toEqual({ text: answer, samePrompt: null });
  const none = '{"prompt_token_ids":null}';
  expect(takeOutEcho(bytes(none), () => bytes("[1]"))).toEqual({ text: none, samePrompt: null });
});
