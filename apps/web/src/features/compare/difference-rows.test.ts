import { expect, test } from "vitest";
import { differenceRows } from "./difference-rows.ts";

test("a setting that is off is told by what that means, once", () => {
  const rows = differenceRows([
    { path: "backend.lora", values: ["null", null, "null"] },
    { path: "backend.lora.rank", values: [null, "8", null] },
    { path: "budget.cost", values: ["null", "5", "5"] },
    { path: "taskSets[0].untilStep", values: ["null", "3", "null"] },
    { path: "seed", values: ["1", "2", "2"] },
  ]);
  expect(rows).toEqual([
    { path: "backend.lora.rank", values: ["all weights", "8", "all weights"] },
    { path: "budget.cost", values: [expect.stringMatching(/no/), "5", "5"] },
    { path: "taskSets[0].untilStep", values: ["to the end", "3", "to the end"] },
    { path: "seed", values: ["1", "2", "2"] },
  ]);
});

test("what one config does not have at all stays unsaid, and a name that no schema knows is off", () => {
  expect(differenceRows([{ path: "old.setting", values: [null, "null"] }])).toEqual([
    { path: "old.setting", values: [null, "none"] },
  ]);
});
