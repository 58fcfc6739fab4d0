/** What holding, letting go and cancelling do to a step, group or rollout; the table of docs/decisions/0012-dispatch.md in words. */
import type { PartAction, PartReply } from "@rolldeck/contracts/api/dispatch";

type Part = PartReply["part"];

const sandboxes = "its sandboxes and leases stay with it";
const words: Record<Part, Record<PartAction, string>> = {
  rollout: {
    hold: "The stage it is in comes to its end and the next one is not admitted. It keeps its leases and its sandbox, so others have that much less, until it is resumed.",
    resume: "It waits for its next stage as before.",
    cancel:
      "It ends as cancelled at once: its leases go back, its worker stops at its next write, within some 5 s, and its sandbox is closed. Its turns, calls and files stay readable and are never trained. The group policy says what that does to its group.",
  },
  group: {
    hold: `The stages its rollouts are in come to their end and the next ones are not admitted; ${sandboxes}. Groups of other instances go on.`,
    resume: "Its rollouts wait for their next stages as before. One that was held by itself stays held.",
    cancel:
      "It is set aside with its unsettled rollouts: leases go back and sandboxes are closed. What is scored stays readable and is not trained.",
  },
  step: {
    hold: `The stages its rollouts are in come to their end and the next ones are not admitted, of all groups it has now; ${sandboxes}.`,
    resume: "Its groups go on. Groups and rollouts that were held by themselves stay held.",
    cancel:
      "All its unsettled rollouts and the step end as cancelled: leases go back and sandboxes are closed. What they did stays readable and is never trained. Its number stays unused and the run goes on with the next. A step whose update has begun is not cancelled.",
  },
};

export const partWords = (part: Part, action: PartAction): string => words[part][action];
export const partTitle = (part: Part, action: PartAction): string =>
  `${action === "hold" ? "Hold" : action === "resume" ? "Let" : "Cancel"} this ${part}${action === "resume" ? " go on" : ""}?`;
export const partAction = (part: Part, action: PartAction): string =>
  `${action === "hold" ? "Hold" : action === "resume" ? "Resume" : "Cancel"} ${part}`;

export const drainWords =
  "Nothing is begun anew; what is begun is admitted to its next stages and comes to its end. Sandboxes and leases go back as rollouts settle, and then the run pauses with none held. A step that was not full waits for resume.";
