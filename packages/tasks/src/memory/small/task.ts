/**
 * The small memory task: the same tool, the same messages and resets as the large one, for a policy of under a million
 * parameters. The digit of a letter stands in some middle part; whoever does not write it down, or does not carry it on
 * through the parts after it, can only guess (10 %).
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Task, TaskInstance, Verdict } from "@rolldeck/contracts/ports/task";
import { memoryMessages } from "@rolldeck/tools/memory-messages";
import type { ToolName } from "@rolldeck/tools/registry";
import { parseOptions, refuseDataset } from "../../parse-options.ts";
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
    verify: async (instance, rollout) => verdictOn(rollout.finalAnswer, stateOf(instance).answers),
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

function verdictOn(given: string | null, answers: readonly string[]): Verdict {
  const success = given !== null && answers.includes(given.trim());
  const said = given === null ? "no answer" : `answered ${JSON.stringify(given.slice(0, 40))}`;
  const reward = success ? 1 : 0;
  return { reward, success, parts: { answer: reward }, notes: success ? null : `${said}; it was ${answers[0]}` };
}

/** @throws BoundaryError("verifier") for an instance that is none of this task's */
function stateOf({ instanceId, state }: TaskInstance): SmallState {
  const parsed = SmallState.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new BoundaryError("verifier", "bad_instance", `${instanceId} is not one of memory-small`, {
    cause: parsed.error,
  });
}
