/** Turns of any parts, for round trips: whatever content and arguments a model may write, without call formats in its words. */
import type { NamedCall, ToolSpec, TurnParts } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { typeName } from "../src/core/json-schema.ts";

type Json = JsonObject[string];

/** Any JSON value a double can hold exactly; −0 is written as 0 in JSON too. */
export const anyJson = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.constantFrom("5", "true", "null", "[1]", "\n", " a ", "\nb\n\n", "</think>", "it's", '"', "a</b>"),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x)),
    fc.maxSafeInteger(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.string({ unit: "binary" }), tie("value"), { maxKeys: 3 }),
  ),
})).value;

const name = fc.stringMatching(/^[a-z_][a-z0-9_.-]{0,10}$/);
const anyCall = fc.record({ name, arguments: fc.dictionary(name, anyJson, { maxKeys: 4 }) });

export const anyCalls = fc.uniqueArray(anyCall, { maxLength: 4, selector: (call) => call.name });

const words = fc.constantFrom(
  "a[i]",
  "{",
  "}",
  "[1, 2]",
  "<b>",
  "</b>",
  "\n",
  " ",
  "it's",
  "é",
  "```",
  '"',
  "🙂",
  "漢字",
);
export const anyWords = fc
  .array(fc.oneof(words, fc.string({ unit: "binary", maxLength: 8 })), { maxLength: 8 })
  .map((parts) => parts.join("").trim());

export const anyTurn: fc.Arbitrary<Required<TurnParts>> = fc.record({
  reasoning: anyWords,
  content: anyWords,
  calls: anyCalls,
});

/** Tools whose schemas ask for exactly the types of these calls' arguments. */
export const toolsOf = (calls: readonly NamedCall[]): ToolSpec[] =>
  calls.map((call) => ({
    name: call.name,
    description: "",
    parameters: {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(call.arguments).map(([key, value]) => [key, { type: typeName(value) }]),
      ),
    },
  }));
