import { BoundaryError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRewardJson, parseRewardText, rewardOf } from "./reward-file.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const outcome = (parse: (bytes: Uint8Array) => unknown, content: Uint8Array): unknown => {
  try {
    return parse(content);
  } catch (cause) {
    if (cause instanceof BoundaryError && cause.boundary === "verifier") return "verifier error";
    throw cause;
  }
};

describe("a reward", () => {
  test("in JSON: an object of numbers, or a bare number", () => {
    expect(parseRewardJson(bytes('{"reward": 0.5, "speed": 2}\n'))).toEqual({ reward: 0.5, speed: 2 });
    expect(parseRewardJson(bytes(" 1 "))).toEqual({ reward: 1 });
  });
  test("in JSON: true and false are the numbers that Harbor takes them for, 1 and 0, where a key says them", () => {
    expect(parseRewardJson(bytes('{"reward": true, "clean": false}'))).toEqual({ reward: 1, clean: 0 });
    expect(["true", "false"].map((text) => outcome(parseRewardJson, bytes(text)))).toEqual(
      Array(2).fill("verifier error"),
    );
    expect(["true", "false"].map((text) => outcome(parseRewardText, bytes(text)))).toEqual(
      Array(2).fill("verifier error"),
    );
  });
  test("one key that is no number spoils all: nothing is taken for a reward", () => {
    for (const value of ['"0.5"', '"true"', "null", "[1]", '{"value": 1}', "NaN", "Infinity", "-Infinity", "1e309"]) {
      const text = `{"reward": 1, "detail": ${value}}`;
      expect([value, outcome(parseRewardJson, bytes(text))]).toEqual([value, "verifier error"]);
    }
    expect(() => parseRewardJson(bytes('{"reward": {"value": 1}}'))).toThrow(/reward is no number/);
  });
  test("as text: one number", () => {
    expect(["1", " 0.25\n", "-1", "1e-3", ".5", "2."].map((text) => parseRewardText(bytes(text)))).toEqual(
      [1, 0.25, -1, 0.001, 0.5, 2].map((reward) => ({ reward })),
    );
  });
  test.each([
    "",
    " \n",
    "NaN",
    '{"reward": NaN}',
    '{"reward": "1"}',
    '{"reward": null}',
    '{"reward": "true"}',
    '{"reward": [1]}',
    '{"reward": {"reward": 1}}',
    '{"reward": Infinity}',
    "[1]",
    "{}",
    "[]",
    "null",
    '"1"',
    "1e999",
    '{"a": 1e999}',
    "{",
    "1 2",
  ])("%j in JSON is an error, never 0", (text) => expect(outcome(parseRewardJson, bytes(text))).toBe("verifier error"));
  test.each(["", "\n", "nan", "inf", "Infinity", "1 2", "0x10", "1e999", "passed", "1\n0", "1,0"])(
    "%j as text is an error, never 0",
    (text) => expect(outcome(parseRewardText, bytes(text))).toBe("verifier error"),
  );
  test("of a megabyte that is no number is an error at once: the worker reads it beside other rollouts' work", () => {
    const startedAt = performance.now();
    for (const text of [`${"1".repeat(1_000_000)}x`, `1.${"0".repeat(1_000_000)}x`, `1e${"0".repeat(1_000_000)}`]) {
      expect(outcome(parseRewardText, bytes(text))).toBe("verifier error");
    }
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });
  test("that is no text is an error", () => {
    expect(outcome(parseRewardText, Buffer.from([0xff, 0x31]))).toBe("verifier error");
    expect(outcome(parseRewardJson, Buffer.from([0x31, 0xff]))).toBe("verifier error");
  });
  test("of any bytes is finite numbers or an error", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.json().map(bytes), fc.double().map(String).map(bytes)),
        (content) => {
          for (const parse of [parseRewardJson, parseRewardText]) {
            const rewards = outcome(parse, content);
            if (rewards === "verifier error") continue;
            const values = Object.values(Object(rewards));
            expect(values.length).toBeGreaterThan(0);
            expect(values.every((value) => Number.isFinite(value))).toBe(true);
          }
        },
      ),
    );
  });
  test("has the key that is asked for, or it is an error", () => {
    expect(rewardOf({ reward: 0 }, "reward")).toBe(0);
    expect(() => rewardOf({ speed: 1 }, "reward")).toThrow(/wrote no reward, but speed/);
    expect(() => rewardOf({}, "constructor")).toThrow(BoundaryError);
  });
});
