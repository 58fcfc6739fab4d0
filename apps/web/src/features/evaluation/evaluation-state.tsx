import type { StepState } from "@rolldeck/contracts/lifecycle";
import type { JSX } from "react";

const words: Record<StepState, string> = {
  gathering: "measuring",
  updating: "measuring",
  done: "measured",
  cancelled: "cancelled",
  failed: "not measured",
};

export const StatusWords = ({ state }: { state: StepState }): JSX.Element => (
  <span className={state === "failed" || state === "cancelled" ? "text-failed" : "text-g8"}>{words[state]}</span>
);
