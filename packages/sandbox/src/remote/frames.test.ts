import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFrame, encodeFrame, type Header, maxPayloadBytes, ProtocolError } from "./frames.ts";

const headers: fc.Arbitrary<Header> = fc.oneof(
  fc.record({
    k: fc.constant("open" as const),
    s: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    method: fc.string({ maxLength: 40 }),
    params: fc.jsonValue(),
  }),
  fc.record({ k: fc.constant("note" as const), s: fc.integer({ min: 1, max: 1000 }), body: fc.jsonValue() }),
  fc.record({
    k: fc.constant("credit" as const),
    s: fc.integer({ min: 1, max: 1000 }),
    c: fc.constantFrom(0, 1, 2),
    n: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  }),
  fc.record({ k: fc.constant("cancel" as const), s: fc.integer({ min: 1, max: 1000 }) }),
);

describe("frames", () => {
  it("come out as they went in", () => {
    fc.assert(
      fc.property(headers, (header) => {
        const frame = decodeFrame(encodeFrame(header));
        // As JSON has it: minus zero is zero.
        expect(JSON.stringify(frame.header)).toBe(JSON.stringify(header));
        expect(frame.payload.length).toBe(0);
      }),
    );
  });

  it("keep every byte of their payload", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4096 }), (payload) => {
        const frame = decodeFrame(encodeFrame({ k: "data", s: 7, c: 1 }, payload));
        expect(Buffer.compare(frame.payload, payload)).toBe(0);
      }),
    );
  });

  it("of noise end in a protocol error and nothing else", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        expect(() => decodeFrame(noise)).toThrow(ProtocolError);
      }),
    );
  });

  it.each([
    ["a length past the message", Buffer.from([0, 0, 1, 0, 123])],
    ["a huge length", Buffer.from([255, 255, 255, 255, 123, 125])],
    ["an unknown kind", encoded({ k: "shutdown" })],
    ["a key too many", encoded({ k: "cancel", s: 1, why: "x" })],
    ["stream 0", encoded({ k: "cancel", s: 0 })],
    ["a note nested too deep to be written again", deep("note", "body")],
    ["parameters nested too deep to be written again", deep("open", "params")],
    ["a payload where none belongs", Buffer.concat([encoded({ k: "cancel", s: 1 }), Buffer.from("x")])],
    [
      "a payload past the limit",
      Buffer.concat([encoded({ k: "data", s: 1, c: 1 }), Buffer.alloc(maxPayloadBytes + 1)]),
    ],
  ])("with %s are refused", (_what, message) => {
    expect(() => decodeFrame(message)).toThrow(ProtocolError);
  });
});

function deep(kind: string, field: string): Buffer {
  const method = kind === "open" ? '"method":"exec",' : "";
  return framed(`{"k":"${kind}","s":1,${method}"${field}":${"[".repeat(8_000)}${"]".repeat(8_000)}}`);
}

function encoded(header: unknown): Buffer {
  return framed(JSON.stringify(header));
}

function framed(text: string): Buffer {
  const json = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}
