/**
 * What things cost here, as the operator says in `ROLLDECK_PRICES`: one JSON object. A price that is not said is unknown, not 0.
 */

import { z } from "zod";
import { InputError } from "./errors.ts";
import { jsonOrUndefined } from "./json-or-undefined.ts";

const price = (what: string) => z.number().min(0).max(1e9).nullable().default(null).describe(what);

export const Prices = z.strictObject({
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, "must be three capital letters")
    .default("USD")
    .describe("Of all prices and of budget.cost"),
  gpuHour: price("One hour of a run on a GPU worker; on the fleet, of each of its devices"),
  sandboxHour: price("One hour of one sandbox"),
  judgeMillionTokens: price("A million tokens that a judge read or wrote"),
  hostedPromptMillionTokens: price("A million prompt tokens that a hosted policy read"),
  hostedSampledMillionTokens: price("A million tokens that a hosted policy sampled"),
  hostedTrainedMillionTokens: price("A million tokens of the rows that a hosted trainer was sent"),
});
export type Prices = z.infer<typeof Prices>;

/** @throws InputError that names the field */
export function parsePrices(text: string): Prices {
  const parsed = Prices.safeParse(jsonOrUndefined(text));
  if (parsed.success) return parsed.data;
  throw new InputError(
    parsed.error.issues.map(({ path, message }) => ({
      path: ["ROLLDECK_PRICES", ...path].join("."),
      message,
      fix: 'write it as {"currency": "USD", "gpuHour": 2.5}',
    })),
  );
}
