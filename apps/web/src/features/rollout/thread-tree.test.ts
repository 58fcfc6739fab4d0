import { threadOfCall } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { expect, test } from "vitest";
import { callOfThread, depthOf, inReadingOrder, subAgents } from "./thread-tree.ts";

const turn = (number: number, thread = "") => ({ turn: number, thread, calls: [] });

test("sub-agents stand below the turn that made them, in call order, also when they ran at once", () => {
  // Turn 1 made two agents that took turns in turn; the second made one of its own.
  const turns = [
    turn(0),
    turn(1),
    turn(2, "1.1"),
    turn(3, "1.0"),
    turn(4, "1.1/2.0"),
    turn(5, "1.0"),
    turn(6, "1.1"),
    turn(7),
  ];
  expect(inReadingOrder(turns).map((each) => each.turn)).toEqual([0, 1, 3, 5, 2, 4, 6, 7]);
  expect(subAgents(turns).get("1.0")).toEqual({ thread: "1.0", firstTurn: 3, turns: 2 });
  expect([...subAgents(turns).keys()].sort()).toEqual(["1.0", "1.1", "1.1/2.0"]);
});

test("a thread's name says which call made it, and how deep it lies", () => {
  expect(threadOfCall(turn(3), 0)).toBe("3.0");
  expect(threadOfCall(turn(5, "3.0"), 1)).toBe("3.0/5.1");
  expect(callOfThread("3.0/5.1")).toEqual({ turn: 5, index: 1 });
  expect(callOfThread("")).toBeNull();
  expect([depthOf(""), depthOf("3.0"), depthOf("3.0/5.1")]).toEqual([0, 1, 2]);
});

test("no turn is lost or doubled, whatever the threads are called", () => {
  const threads = fc.constantFrom("", "0.0", "0.1", "1.0/2.0", "9.9", "x", "1.0");
  fc.assert(
    fc.property(fc.array(threads, { maxLength: 12 }), (list) => {
      const turns = list.map((thread, number) => turn(number, thread));
      const ordered = inReadingOrder(turns).map((each) => each.turn);
      expect(ordered.toSorted((a, b) => a - b)).toEqual(turns.map((each) => each.turn));
    }),
  );
});
