"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { PartButtons } from "./part-buttons.tsx";

/** Commands on the step that is shown, while it is open. */
export function PartControls({
  run,
  purpose,
  step,
}: {
  run: RunDetail;
  purpose: "train" | "evaluate";
  step: number | null;
}): JSX.Element | null {
  const open = run.openSteps.find((each) => each.purpose === purpose && each.step === step);
  if (open?.state !== "gathering") return null;
  return <PartButtons part="step" id={open.stepId} />;
}
