/** Steps that train nothing, and a preflight that could not tell anything. Pure. */
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;

export const stageIssues = (config: RunConfig): Issue[] => [...spanIssues(config), ...preflightIssues(config)];

function spanIssues({ kind, stepSource, taskSets, budget }: RunConfig): Issue[] {
  const issues: Issue[] = [];
  for (const [at, { fromStep, untilStep }] of taskSets.entries()) {
    const path = `taskSets[${at}]`;
    if (untilStep !== null && untilStep < fromStep)
      issues.push({ path: `${path}.untilStep`, message: `is before fromStep ${fromStep}`, fix: "raise it, or null" });
    if (stepSource === "driven" && (fromStep > 1 || untilStep !== null))
      issues.push({
        path: fromStep > 1 ? `${path}.fromStep` : `${path}.untilStep`,
        message: "an outside trainer names the instances of its steps",
        fix: "leave it out",
      });
  }
  if (issues.length > 0 || kind !== "train" || stepSource !== "planned") return issues;
  const gap = firstGap(taskSets, budget.steps);
  return gap === null
    ? []
    : [{ path: "taskSets", message: `no task set is trained in step ${gap}`, fix: "widen fromStep or untilStep" }];
}

/** The first of the steps 1…steps that no set is trained in. */
function firstGap(taskSets: RunConfig["taskSets"], steps: number): number | null {
  let next = 1;
  while (next <= steps) {
    const ends = taskSets
      .filter(({ fromStep, untilStep }) => fromStep <= next && (untilStep === null || untilStep >= next))
      .map(({ untilStep }) => untilStep ?? Number.POSITIVE_INFINITY);
    if (ends.length === 0) return next;
    next = Math.max(...ends) + 1;
  }
  return null;
}

function preflightIssues({ preflight, kind, stepSource, budget, dispatcher }: RunConfig): Issue[] {
  if (preflight === "none") return [];
  const issues: Issue[] = [];
  const add = (path: string, message: string, fix: string) => issues.push({ path, message, fix });
  if (kind !== "train" || stepSource !== "planned")
    add(
      "preflight",
      "overfitting needs steps that this server trains",
      "use kind train and stepSource planned, or none",
    );
  if (budget.steps < 5)
    add("budget.steps", "fewer than 5 steps say nothing about whether a reward rises", "use at least 5");
  if (dispatcher.zeroVariance.mode === "replace")
    add("dispatcher.zeroVariance.mode", "there is one batch, so no group can be replaced", "use keep or filter");
  if (dispatcher.overSample.groups > 0)
    add("dispatcher.overSample.groups", "there is one batch, so no group can be started beyond it", "use 0");
  return issues;
}
