/**
 * A model that is stuck writes one thing over and over. Reading that must cost what its length says: where each place of a run of
 * 300,000 characters looks at the whole run, a single one of these takes minutes and everything else of the process waits.
 */
import { expect, test } from "vitest";
import { otherDialect } from "../other-dialect.ts";
import { dialects } from "../registry.ts";

const length = 300_000;
const pieces = [
  "\n",
  " ",
  "\n\t",
  " \n",
  "\r\n",
  "<",
  "[",
  "{",
  "{\n",
  "[ ",
  "`",
  "-",
  "a",
  "a.",
  "<think>\n",
  "word\n",
];
const tools = [{ name: "get", description: "", parameters: {} }];

test.each(Object.keys(dialects))("%s reads runs of anything", (name) => {
  const dialect = dialects[name as keyof typeof dialects];
  for (const piece of pieces) {
    const text = piece.repeat(Math.ceil(length / piece.length));
    expect(dialect.parse(text, tools).calls).toEqual([]);
    expect(otherDialect(text, dialect)).toBeNull();
    expect(dialect.parse(`<tool_call>${text}`, tools).calls).toEqual([]);
  }
});
