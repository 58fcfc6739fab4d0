import fc from "fast-check";
import { expect, test } from "vitest";
import { SseEvents } from "./sse-events.ts";

function read(bytes: Uint8Array, cuts: readonly number[]): string[] {
  const events = new SseEvents();
  const found: string[] = [];
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    found.push(...events.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return [...found, ...events.end()];
}

test("wherever the bytes are cut, the same events come out", () => {
  const text = fc.string({ unit: "grapheme" }).map((value) => value.replace(/[\r\n]/g, ""));
  const cuts = fc.array(fc.nat());
  fc.assert(
    fc.property(fc.array(text, { maxLength: 6 }), fc.constantFrom("\n", "\r\n", "\r"), cuts, (data, eol, places) => {
      const stream = data.map((line) => `: a comment${eol}event: x${eol}data: ${line}${eol}${eol}`).join("");
      expect(read(new TextEncoder().encode(stream), places)).toEqual(data);
    }),
  );
});

test("data of several lines is one event; a last event needs no blank line", () => {
  const bytes = new TextEncoder().encode("data: a\ndata:b\n\ndata: [DONE]");
  expect(read(bytes, [])).toEqual(["a\nb", "[DONE]"]);
});
