/**
 * Conversations for the warm start. They teach the format and how the digit is found, in a part or in the memory, and leave something
 * to learn: at every part the digit is written down or carried on only some of the time, else the memory says again that it is not
 * known. Answers are never made up: what the memory does not hold is answered as unknown.
 */
import type { Demonstration } from "@rolldeck/contracts/ports/task";
import { memoryMessages } from "@rolldeck/tools/memory-messages";
import { seededRandom } from "../../random.ts";
import { defaultOptions, type SmallOptions, type SmallState, smallState } from "./instances.ts";

/** What a memory without the digit says. */
export const unknown = "?";
/** Share of the parts after which the digit is in the memory, where it could be. */
const keepShare = 0.55;

/** Deterministic in `seed`, from training texts only. The first n of a longer list are the list of n. */
export function smallDemonstrations(
  seed: number,
  count: number,
  options: SmallOptions = defaultOptions,
): Demonstration[] {
  const random = seededRandom(`memory-small demonstrations ${seed}`);
  return Array.from({ length: count }, () => {
    const state = smallState("train", random.integer(0, 2 ** 31 - 1), options);
    return demonstrate(state, () => random.next() < keepShare);
  });
}

function demonstrate(state: SmallState, keeps: () => boolean): Demonstration {
  const { chunks } = state;
  const [digit] = state.answers;
  let memory = "";
  const turns = chunks.map((_, part): Demonstration["turns"][number] => {
    const visible = part === state.part || memory === digit;
    memory = visible && keeps() ? digit : unknown;
    return {
      calls: [{ name: "next_with_summary", arguments: { summary: memory } }],
      outputs: [],
      restart: memoryMessages(state, part + 1, memory),
    };
  });
  return {
    messages: memoryMessages(state, 0, ""),
    turns: [...turns, { calls: [{ name: "finish", arguments: { answer: memory } }], outputs: [] }],
  };
}
