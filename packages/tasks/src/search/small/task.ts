/**
 * The small search task: which code has the place of a name? Two searches answer it: the name leads to its place, the place to its code.
 * Small enough for a policy of under a million parameters, and a search task all the same: tool, result text and verifier are
 * those of the large one, and without searching only guessing is left (10 %).
 */
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { ToolName } from "@rolldeck/tools/registry";
import { instanceState } from "../../instance-state.ts";
import { parseOptions, refuseDataset } from "../../parse-options.ts";
import { verifyAnswer } from "../verify-answer.ts";
import { searchSmallDemonstrations } from "./demonstrations.ts";
import { SearchSmallOptions, SearchSmallState, searchSmallInstance } from "./instances.ts";
import { searchSmallMessages } from "./messages.ts";

function searchSmallWith(toolOff: boolean) {
  return {
    name: "search-small",
    description: "Find a digit in 200 short documents with two searches, the second for what the first found.",
    sandbox: "none",
    tools: ["local_search", "finish"] satisfies ToolName[],
    // Two searches and an answer fit twice over.
    defaults: { maxTurns: 6, maxContextTokens: 384 },
    size: () => null,
    instance: (split, index) => searchSmallInstance(split, index, toolOff),
    messages: (instance) => searchSmallMessages(stateOf(instance).name),
    verify: async (instance, rollout) => verifyAnswer(rollout.finalAnswer, stateOf(instance).answers),
    demonstrations: searchSmallDemonstrations,
  } satisfies Task;
}

export const searchSmall: Task = {
  ...searchSmallWith(false),
  open: async ({ dataset, options }) => {
    refuseDataset(dataset);
    return searchSmallWith(parseOptions(SearchSmallOptions, options).toolOff);
  },
};

const stateOf = (instance: TaskInstance) => instanceState(SearchSmallState, instance, "not one of search-small");
