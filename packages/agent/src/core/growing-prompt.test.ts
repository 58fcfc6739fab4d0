import type { TokenRange } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { expect, it } from "vitest";
import { GrowingPrompt } from "./growing-prompt.ts";
import { TokenList } from "./token-list.ts";

const token = fc.oneof(fc.nat(9), fc.nat(151_936), fc.constantFrom(0, 9, 10, 99, 100, 4_294_967_295));

it("is the same as an array and its JSON text, however it grew and whenever it was read", () => {
  const steps = fc.array(
    fc.record({ added: fc.array(token, { maxLength: 40 }), skip: fc.boolean(), read: fc.boolean() }),
  );
  fc.assert(
    fc.property(steps, (grown) => {
      const tokens = new TokenList();
      const prompt = new GrowingPrompt(tokens, [], () => []);
      const expected: number[] = [];
      for (const { added, skip, read } of grown) {
        const start = tokens.length;
        tokens.push(added);
        if (!skip) {
          prompt.append({ start, end: tokens.length });
          expected.push(...added);
        }
        if (read) expect(new TextDecoder().decode(prompt.json())).toBe(JSON.stringify(expected));
      }
      expect(prompt.toArray()).toEqual(expected);
      expect(prompt.length).toBe(expected.length);
      expect(new TextDecoder().decode(prompt.json())).toBe(JSON.stringify(expected));
      const inOrder = prompt.ranges().flatMap(({ start, end }: TokenRange) => tokens.slice(start, end));
      expect(inOrder).toEqual(expected);
    }),
  );
});

it("may go back to earlier tokens, as a prompt after a dropped observation does", () => {
  const tokens = new TokenList();
  tokens.push([10, 11, 12, 13]);
  const prompt = new GrowingPrompt(tokens, [{ start: 2, end: 4 }], () => []);
  expect(new TextDecoder().decode(prompt.json())).toBe("[12,13]");
  prompt.append({ start: 0, end: 1 });
  prompt.append({ start: 2, end: 3 });
  prompt.append({ start: 3, end: 4 });
  expect(new TextDecoder().decode(prompt.json())).toBe("[12,13,10,12,13]");
  expect(prompt.ranges()).toEqual([
    { start: 2, end: 4 },
    { start: 0, end: 1 },
    { start: 2, end: 4 },
  ]);
});
