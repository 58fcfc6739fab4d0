/**
 * What a run has used → what that cost, at the operator's prices. Pure. Invariants: what was not used costs 0 at any price; what was
 * used and has no price is unknown, never 0, and is named; the total is the sum of the known parts; twice the use is twice the cost.
 */
import type { FleetDemand } from "@rolldeck/contracts/fleet";
import type { Prices } from "@rolldeck/contracts/prices";

/** Since the run began; every number ≥ 0. */
export interface RunUsage {
  /** Hours on a GPU worker, waiting and pauses included: the model stays on it; of each device on the fleet. 0 for a hosted policy. */
  readonly gpuHours: number;
  /** Sum over the run's sandboxes of the hours that each was open. */
  readonly sandboxHours: number;
  readonly judgeTokens: number;
  readonly hostedPromptTokens: number;
  readonly hostedSampledTokens: number;
  readonly hostedTrainedTokens: number;
  /** Groups of which an update was sent a row. */
  readonly trainedGroups: number;
}
export const costParts = ["gpu", "sandbox", "judge", "hosted"] as const;
export type CostPart = (typeof costParts)[number];
export interface RunCost {
  /** In the prices' currency; null: used, but without a price. */
  readonly parts: Readonly<Record<CostPart, number | null>>;
  /** Of the parts that are known; null: none is. */
  readonly total: number | null;
  /** total ÷ trained groups; null before the first. */
  readonly perTrainedGroup: number | null;
  /** Prices that are missing for what was used: the total is a lower bound. */
  readonly unpriced: readonly (keyof Prices)[];
}

const million = 1_000_000;
/** Backends whose use is counted in tokens: their GPUs are not this server's to count. */
const hostedBackends: readonly string[] = [
  "tinker",
  "openai-completions",
  "vllm-generate",
  "openai-chat",
  "skyrl-train",
  "verl",
];
export const isHosted = (backend: string): boolean => hostedBackends.includes(backend);

/** Devices that a run is charged for by the hour. @param demand null: the one GPU worker beside this server, or one by address */
export function chargedDevices(demand: FleetDemand | null): number {
  if (demand === null) return 1;
  return demand.devices + (demand.layout === "split" ? demand.replicas * demand.replicaDevices : 0);
}

export function runCost(usage: RunUsage, prices: Prices): RunCost {
  const unpriced: (keyof Prices)[] = [];
  const cost = (amount: number, name: Exclude<keyof Prices, "currency">): number | null => {
    const price = prices[name];
    if (amount === 0) return 0;
    if (price !== null) return amount * price;
    unpriced.push(name);
    return null;
  };
  const hosted = [
    cost(usage.hostedPromptTokens / million, "hostedPromptMillionTokens"),
    cost(usage.hostedSampledTokens / million, "hostedSampledMillionTokens"),
    cost(usage.hostedTrainedTokens / million, "hostedTrainedMillionTokens"),
  ];
  const parts = {
    gpu: cost(usage.gpuHours, "gpuHour"),
    sandbox: cost(usage.sandboxHours, "sandboxHour"),
    judge: cost(usage.judgeTokens / million, "judgeMillionTokens"),
    hosted: knownSum(hosted),
  };
  const total = knownSum(Object.values(parts));
  const perTrainedGroup = total === null || usage.trainedGroups === 0 ? null : total / usage.trainedGroups;
  return { parts, total, perTrainedGroup, unpriced };
}

/** Of those that are known; null where none is. */
function knownSum(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}
