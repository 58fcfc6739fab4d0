/** What a run costs, as points of its steps: each is what the run had cost in all when the step ended. */
import type { MetricDefinition } from "./metric-definition.ts";

const cost = { section: "cost", better: "lower", unit: "currency" } as const;

export const costMetricDefinitions = {
  "cost/total": {
    ...cost,
    title: "Cost",
    definition:
      "Sum of what GPUs, sandboxes, judges and hosted tokens cost since the run began, at the operator's prices; what was used and has no price is left out.",
  },
  "cost/gpu": {
    ...cost,
    title: "Cost of GPUs",
    definition:
      "Hours from the run's start × gpuHour, of a run on a GPU worker: one GPU for as long as the run holds its model, waiting and pauses included, but not the time from its end until it was set back to a checkpoint; runs that share one count in full.",
  },
  "cost/sandbox": {
    ...cost,
    title: "Cost of sandboxes",
    definition: "Hours that each of the run's sandboxes was open, summed, × sandboxHour.",
  },
  "cost/judge": {
    ...cost,
    title: "Cost of judges",
    definition:
      "Tokens that a judge read and wrote for the run's verifiers, as its server counted them, × judgeMillionTokens ÷ 1,000,000.",
  },
  "cost/hosted": {
    ...cost,
    title: "Cost of the hosted policy",
    definition:
      "Of a policy that is not on a GPU worker of this server: prompt, sampled and trained tokens, attempts that were given up included, each × its price ÷ 1,000,000. Prompts count in full, cached or not.",
  },
  "cost/per-trained-group": {
    ...cost,
    title: "Cost per trained group",
    definition: "Cost ÷ groups of which an update was sent a row.",
  },
  "cost/unpriced": {
    ...cost,
    unit: "prices",
    title: "Prices that are missing",
    definition:
      "Prices that the operator does not name, of what the run had used: with any, the cost is a lower bound. Left out where none is missing.",
  },
} as const satisfies Record<`cost/${string}`, MetricDefinition>;
