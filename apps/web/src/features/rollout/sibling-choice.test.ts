import { expect, test } from "vitest";
import { firstDivergence, usualSiblings } from "./sibling-choice.ts";

const sibling = (rolloutId: string, reward: number | null) => ({
  rolloutId,
  sample: 0,
  reward,
  success: null,
  ending: null,
});
const say = (...texts: string[]) => texts.map((text) => ({ sampled: { text, cutCharacters: 0 } }));

test("a rollout is read against the best and the worst of the others", () => {
  const group = [sibling("a", 0.5), sibling("b", 1), sibling("c", null), sibling("d", 0)];
  expect(usualSiblings(group, "a")).toEqual(["b", "d"]);
  expect(usualSiblings(group, "b")).toEqual(["a", "d"]);
  expect(usualSiblings([sibling("a", 1), sibling("b", 0)], "a")).toEqual(["b"]);
  // Without scores, with the next one; alone, with none.
  expect(usualSiblings([sibling("a", null), sibling("b", null)], "a")).toEqual(["b"]);
  expect(usualSiblings([sibling("a", 1)], "a")).toEqual([]);
});

test("rollouts part where one says something else, or ends", () => {
  const over = (...texts: string[]) => ({ turns: say(...texts), complete: true });
  const goingOn = (...texts: string[]) => ({ turns: say(...texts), complete: false });
  expect(firstDivergence([over("x", "y"), over("x", "z")])).toBe(1);
  expect(firstDivergence([over("x", "y"), over("x")])).toBe(1);
  expect(firstDivergence([over("x"), over("x")])).toBeNull();
  // What is not there yet parts from nothing.
  expect(firstDivergence([over("x", "y"), goingOn("x")])).toBeNull();
  expect(firstDivergence([over("x", "y"), goingOn("x"), over("x", "z")])).toBe(1);
  const long = (cutCharacters: number) => ({ turns: [{ sampled: { text: "x", cutCharacters } }], complete: true });
  expect(firstDivergence([long(5), long(9)])).toBe(0);
  expect(firstDivergence([])).toBeNull();
});
