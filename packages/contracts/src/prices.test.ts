import { expect, test } from "vitest";
import { InputError } from "./errors.ts";
import { parsePrices } from "./prices.ts";

test("a price that is not said is unknown, not 0", () => {
  expect(parsePrices('{"gpuHour": 2.5, "sandboxHour": 0}')).toEqual({
    currency: "USD",
    gpuHour: 2.5,
    sandboxHour: 0,
    judgeMillionTokens: null,
    hostedPromptMillionTokens: null,
    hostedSampledMillionTokens: null,
    hostedTrainedMillionTokens: null,
  });
});

test.each([
  ["{gpuHour: 2}", "ROLLDECK_PRICES"],
  ['{"gpuHour": -1}', "ROLLDECK_PRICES.gpuHour"],
  ['{"gpuHours": 1}', "ROLLDECK_PRICES"],
  ['{"currency": "euro"}', "ROLLDECK_PRICES.currency"],
])("%s is refused by the name of its field", (text, path) => {
  expect(() => parsePrices(text)).toThrow(InputError);
  try {
    parsePrices(text);
  } catch (error) {
    expect(error instanceof InputError && error.issues[0]?.path).toBe(path);
  }
});
