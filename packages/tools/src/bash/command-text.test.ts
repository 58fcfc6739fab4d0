import { expect, it } from "vitest";
import { CommandText } from "./command-text.ts";

it("takes any text that a shell can be given", () => {
  for (const text of ["ls -l", "echo 'a\\n'\necho b", "echo \u{1F600} é", ""])
    expect(CommandText.parse(text)).toBe(text);
});

it.each([
  ["echo a\0b", /NUL/],
  ["echo \uD83D", /half of a surrogate pair/],
  ["echo \uDE00x", /half of a surrogate pair/],
  ["x".repeat(1_000_001), /longer than 1000000/],
])("refuses %j", (text, why) => {
  expect(CommandText.safeParse(text).error?.issues[0]?.message).toMatch(why);
});
