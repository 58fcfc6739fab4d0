/** What is no text in a server's result, measured. */
import { expect, test } from "vitest";
import { outcomeOf } from "./result-text.ts";

const image = (data: string) => outcomeOf({ content: [{ type: "image", mimeType: "image/png", data }] }).output;

test("bytes are told of base64, however its end is filled up", () => {
  expect([image("AAAA"), image("AAA="), image("AA==")].map((text) => /, (\d+) bytes/.exec(text)?.[1])).toEqual([
    "3",
    "2",
    "1",
  ]);
});

test("a server's megabyte that is no base64 is measured at once: other rollouts wait for the worker", () => {
  const startedAt = performance.now();
  expect(image(`${"=".repeat(1_000_000)}x`)).toContain("bytes: not shown");
  expect(performance.now() - startedAt).toBeLessThan(1000);
});
