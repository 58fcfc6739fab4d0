/** The reader of a log finds what is missing in what it is given, and forgives a server that is away. */
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import { expect, test } from "vitest";
import { followLog } from "./follow-log.ts";

type Page = Awaited<ReturnType<Rolldeck["readEvents"]>>;

/** Answers with these numbers, page by page, then with nothing; null: the server is away. */
function answering(...pages: (readonly number[] | null)[]) {
  const asked: (number | undefined)[] = [];
  const readEvents: Rolldeck["readEvents"] = async ({ after }) => {
    asked.push(after);
    const page = pages.shift();
    if (page === null) throw new Error("away");
    if (page === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    const body: Page["events"][number]["body"] = { type: "note", level: "info", message: "tests" };
    const at = new Date(0).toISOString();
    return { events: (page ?? []).map((seq) => ({ runId: "run", seq, at, body })), head: 0 };
  };
  return { asked, readEvents };
}

test("a whole log, over a server that is away at times", async () => {
  const server = answering([1, 2], null, [3], [], [4, 5]);
  const reader = followLog(server, "run");
  await reader.end(5);
  expect(reader.gaps).toBe(0);
  expect(server.asked.slice(0, 5)).toEqual([0, 2, 2, 3, 3]);
});

test.each([
  ["left out", [[1, 2], [4]]],
  [
    "twice",
    [
      [1, 2],
      [2, 3, 4],
    ],
  ],
  ["out of order", [[1, 3, 2, 4]]],
])("an event that is %s is a gap", async (_what, pages) => {
  const reader = followLog(answering(...pages), "run");
  await reader.end(4);
  expect(reader.gaps).toBeGreaterThan(0);
});
