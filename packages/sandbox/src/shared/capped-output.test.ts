import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OutputCollector } from "./capped-output.ts";

const of = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function collect(maxBytes: number, ...chunks: Uint8Array[]) {
  const collector = new OutputCollector(maxBytes);
  for (const chunk of chunks) collector.push(chunk);
  return collector.result();
}

describe("capped output", () => {
  it("keeps all of a stream one byte under the limit and at the limit", () => {
    for (const whole of ["123456789", "1234567890"]) {
      const result = collect(10, of(whole.slice(0, 3)), of(whole.slice(3)));
      expect([text(result.head), result.gapBytes, result.tail.length, result.bytes]).toEqual([
        whole,
        0,
        0,
        whole.length,
      ]);
    }
  });

  it("leaves one byte out of the middle of a stream one byte over the limit", () => {
    const result = collect(10, of("1234567890X"));
    expect([text(result.head), result.gapBytes, text(result.tail), result.bytes]).toEqual(["12345", 1, "7890X", 11]);
  });

  it("keeps nothing with a limit of 0 and counts all the same", () => {
    expect(collect(0, of("abc"))).toEqual({ head: of(""), gapBytes: 3, tail: of(""), bytes: 3 });
  });

  it("keeps a byte of the head with a limit of 1", () => {
    expect(collect(1, of("abc"))).toEqual({ head: of("a"), gapBytes: 2, tail: of(""), bytes: 3 });
  });

  it("does not change when the caller uses a chunk's memory again", () => {
    const collector = new OutputCollector(4);
    const chunk = of("ab");
    collector.push(chunk);
    chunk.fill(0);
    expect(text(collector.result().head)).toBe("ab");
  });

  it("holds head, gap and tail of the stream, whatever the chunks", () => {
    fc.assert(
      fc.property(fc.nat(40), fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 20 }), (maxBytes, chunks) => {
        const whole = Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
        const result = collect(maxBytes, ...chunks);
        expect(result.bytes).toBe(whole.length);
        expect(result.head.length + result.gapBytes + result.tail.length).toBe(whole.length);
        expect(result.head).toEqual(whole.slice(0, result.head.length));
        expect(result.tail).toEqual(whole.slice(whole.length - result.tail.length));
        expect(result.gapBytes === 0).toBe(whole.length <= maxBytes);
        if (whole.length > maxBytes) expect(result.head.length + result.tail.length).toBe(maxBytes);
        else expect(result.tail.length).toBe(0);
      }),
    );
  });

  it("holds no more than the limit of a stream a thousand times as long", () => {
    const collector = new OutputCollector(1024);
    for (let count = 0; count < 1024; count += 1) collector.push(new Uint8Array(1024).fill(count % 256));
    const result = collector.result();
    expect([result.head.length, result.tail.length, result.bytes]).toEqual([512, 512, 1024 * 1024]);
    expect(result.tail.every((byte) => byte === 255)).toBe(true);
  });
});
