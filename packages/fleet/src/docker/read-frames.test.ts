import fc from "fast-check";
import { expect, test } from "vitest";
import { FramedLines, readFrames } from "./read-frames.ts";

const frame = (stream: number, text: string): Buffer => {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([head, bytes]);
};

test("lines are the same in whatever pieces they come, and two streams don't mix", () => {
  const whole = Buffer.concat([frame(1, "one\ntw"), frame(2, "warnäng\n"), frame(1, "o\nthree"), frame(1, "")]);
  expect(readFrames(whole)).toEqual(["one", "warnäng", "two", "three"]);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), (sizes) => {
      const lines = new FramedLines();
      const out: string[] = [];
      for (let at = 0, turn = 0; at < whole.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        out.push(...lines.push(whole.subarray(at, at + size)));
        at += size;
      }
      expect([...out, ...lines.end()]).toEqual(["one", "warnäng", "two", "three"]);
    }),
  );
});
