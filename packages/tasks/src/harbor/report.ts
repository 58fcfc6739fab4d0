/** What people see of a grading: one report for the whole, and one for each step that was graded with it. */
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { NewEvidence, Verdict } from "@rolldeck/contracts/ports/task";
import { TestReport } from "@rolldeck/contracts/test-report";
import type { StepGrade } from "./grade-step.ts";
import type { GradedStep } from "./step-result.ts";

interface Graded {
  readonly step: GradedStep;
  readonly grade: StepGrade | null;
}

/** @param rewardKey is the reward; the other keys are metrics */
export function reportEvidence(graded: readonly Graded[], verdict: Verdict, rewardKey: string): NewEvidence[] {
  const last = graded.at(-1)?.grade;
  if (!last) return [];
  const metrics = Object.fromEntries(
    graded.flatMap(({ step }) =>
      Object.entries(step.rewards)
        .filter(([key]) => key !== rewardKey || graded.length > 1)
        .map(([key, value]): [string, number] => [step.name === "" ? key : `${step.name}: ${key}`, value]),
    ),
  );
  const report: TestReport = {
    ...last.report,
    success: verdict.success,
    metrics,
    flags: [...(verdict.flags ?? [])],
  };
  const content = Buffer.from(JSON.stringify(TestReport.parse(report)));
  return [{ name: artifactNames.tests, mediaType: "application/json", content }];
}
