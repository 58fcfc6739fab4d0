/**
 * The small memory task: the same tool, the same messages and resets as the large one, for a policy of under a million
 * parameters. The digit of a letter stands in some middle part; whoever does not write it down, or does not carry it on
 * through the parts after it, can only guess (10 %).
 */
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import { memoryMessages } from "@rolldeck/tools/memory-messages";
import type { ToolName } from "@rolldeck/tools/registry";
import { instanceState } from "../../instance-state.ts";
import { parseOptions, refuseDataset } from "../../parse-options.ts";
import { answerVerdict } from "../../verifiers/answer-verdict.ts";
import { smallDemonstrations } from "./demonstrations.ts";
import { defaultOptions, SmallOptions, SmallState, smallInstance } from "./instances.ts";

function memorySmallWith(options: SmallOptions): Task {
  return {
    name: "memory-small",
    description:
      "Carry one digit, read in a middle part of a text in 3–5 parts, to the end in a memory that is rewritten.",
    sandbox: "none",
    tools: ["next_with_summary", "finish"] satisfies ToolName[],
    // Every part, the end and an answer.
    defaults: { maxTurns: options.maxParts + 2, maxContextTokens: 2 * options.pairs + 224, callPolicy: "first" },
    size: () => null,
    instance: (split, index) => smallInstance(split, index, options),
    messages: (instance) => memoryMessages(stateOf(instance), 0, ""),
    verify: async (instance, { finalAnswer }) => {
      const [answer] = stateOf(instance).answers;
      return answerVerdict(finalAnswer?.trim() === answer, finalAnswer, [answer]);
    },
    demonstrations: (seed, count) => smallDemonstrations(seed, count, options),
  };
}

export const memorySmall: Task = {
  ...memorySmallWith(defaultOptions),
  open: async ({ dataset, options }) => {
    refuseDataset(dataset);
    return memorySmallWith(parseOptions(SmallOptions, options));
  },
};

const stateOf = (instance: TaskInstance): SmallState => instanceState(SmallState, instance, "not one of memory-small");
