/** What graders call the parts of their work, in words; one that is not known here keeps its name. */
import { visibleText } from "../../../design/visible-text.ts";

const words: ReadonlyMap<string, string> = new Map([
  ["open", "open the sandbox"],
  ["undo", "undo what the agent left running"],
  ["clear", "clear the place of the reward"],
  ["upload", "copy the tests in"],
  ["apply", "apply the patch"],
  ["restore", "put the tests back"],
  ["tests", "run the tests"],
  ["reward", "read the reward"],
]);

export const gradePhaseWords = (name: string): string => words.get(name) ?? visibleText(name);
