/** What a well-formed config asks of this server that it does not have, or that the chosen backend can't honour. Pure. */

import type { OffPolicyConfig } from "@rolldeck/contracts/algorithm-config";
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import type { InputIssue } from "@rolldeck/contracts/errors";
import type { Prices } from "@rolldeck/contracts/prices";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { isLaunchedBackend } from "@rolldeck/contracts/trainer-jobs";
import { isHosted } from "@rolldeck/dispatch/run-cost";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import { dispatcherIssues, dispatcherWarnings } from "./dispatcher-issues.ts";
import { mcpIssues } from "./mcp-issues.ts";
import { stageIssues } from "./stage-issues.ts";

type Issue = z.output<typeof ConfigIssue>;
export interface CheckCatalogue
  extends Pick<
    Catalogue,
    | "taskSets"
    | "dialects"
    | "dispatchers"
    | "backends"
    | "models"
    | "chatTemplates"
    | "mcpServers"
    | "servers"
    | "prices"
  > {
  /** Settings of this config that its backend can't honour, by the backend's own table. */
  readonly refusedSettings: (config: RunConfig) => readonly InputIssue[];
}

export function catalogueIssues(config: RunConfig, catalogue: CheckCatalogue): { issues: Issue[]; warnings: Issue[] } {
  const issues = [
    ...nameIssues(config, catalogue),
    ...backendIssues(config, catalogue),
    ...dispatcherIssues(config),
    ...senseIssues(config),
    ...costIssues(config, catalogue),
    ...stageIssues(config),
  ];
  return { issues, warnings: [...warningsFor(config, catalogue), ...dispatcherWarnings(config)] };
}

function unknownName(path: string, kind: string, name: string, known: readonly string[]): Issue[] {
  if (known.includes(name)) return [];
  const nearest = nearestName(name, known);
  const list = known.length > 0 ? `this server has: ${known.slice(0, 20).join(", ")}` : `this server has no ${kind}`;
  return [{ path, message: `no ${kind} "${name}"`, fix: nearest ? `did you mean ${nearest}?` : list }];
}

function nameIssues(config: RunConfig, catalogue: CheckCatalogue): Issue[] {
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name);
  const tasks = names(catalogue.taskSets);
  return [
    ...config.taskSets.flatMap(({ name }, at) => unknownName(`taskSets[${at}].name`, "task", name, tasks)),
    ...unknownName("agent.dialect", "dialect", config.agent.dialect, catalogue.dialects),
    ...unknownName("dispatcher.name", "dispatcher", config.dispatcher.name, names(catalogue.dispatchers)),
    ...unknownName("backend.name", "backend", config.backend.name, names(catalogue.backends)),
    // Wherever a policy is hosted, its tokenizer and chat template are read here.
    ...unknownName("model.name", "model", config.model.name, names(catalogue.models)),
    ...(config.model.chatTemplate === null
      ? []
      : unknownName("model.chatTemplate", "chat template", config.model.chatTemplate, catalogue.chatTemplates)),
    ...mcpIssues(config, catalogue.mcpServers),
    ...serverIssues(config, catalogue.servers),
  ];
}

/** A server by its name in the operator's list, and spoken to as it is listed. */
function serverIssues({ backend }: RunConfig, servers: Catalogue["servers"]): Issue[] {
  if (backend.server === null) return [];
  const listed = servers.find(({ name }) => name === backend.server);
  if (listed === undefined) {
    const issues = unknownName(
      "backend.server",
      "listed server",
      backend.server,
      servers.map(({ name }) => name),
    );
    const list = isLaunchedBackend(backend.name) ? "ROLLDECK_TRAINERS" : "ROLLDECK_ENDPOINTS";
    const fix = `the operator's list is empty: add it to the file that ${list} names, and start again`;
    return servers.length > 0 ? issues : issues.map((issue) => ({ ...issue, fix }));
  }
  if (listed.backend === backend.name) return [];
  const message = `the operator lists ${backend.server} as ${listed.backend}`;
  return [{ path: "backend.server", message, fix: `choose ${listed.backend} as backend.name` }];
}

function backendIssues(config: RunConfig, catalogue: CheckCatalogue): Issue[] {
  const backend = catalogue.backends.find(({ name }) => name === config.backend.name);
  if (!backend) return [];
  // A backend without any refuses to train as such; an outside trainer brings its own.
  const choosesLoss = config.kind === "train" && backend.losses.length > 0;
  const losses = choosesLoss ? unknownName("algorithm.loss", "loss", config.algorithm.loss, backend.losses) : [];
  const refused = catalogue
    .refusedSettings(config)
    // A missing loss was named above, with the nearest one there is.
    .filter(({ path }) => path !== "algorithm.loss" || losses.length === 0)
    .map(({ path, message, fix }) => ({
      path,
      message,
      fix: fix ?? `backend ${backend.name} can't honour this setting`,
    }));
  return [...losses, ...refused];
}

/** A limit that nothing could be held against: no prices, or none for what every run like this one uses. */
function costIssues({ kind, backend, budget }: RunConfig, { prices }: CheckCatalogue): Issue[] {
  if (budget.cost === null) return [];
  const issue = (message: string, fix: string): Issue[] => [{ path: "budget.cost", message, fix }];
  if (prices === null)
    return issue(
      "this server names no prices, so it can't tell what a run costs",
      "set it to null, or set ROLLDECK_PRICES on the API and the workers and start again",
    );
  const missing = pricesNeeded(kind, backend.name).filter((name) => prices[name] === null);
  if (missing.length === 0) return [];
  const names = missing.join(", ");
  return issue(
    `this server names no price for what this run uses most (${names}), so it would never know when the limit is reached`,
    `set it to null, or give ${names} in ROLLDECK_PRICES on the API and the workers and start again`,
  );
}

function pricesNeeded(kind: RunConfig["kind"], backend: string): (keyof Omit<Prices, "currency">)[] {
  if (!isHosted(backend)) return ["gpuHour"];
  const sampling = ["hostedPromptMillionTokens", "hostedSampledMillionTokens"] as const;
  return kind === "train" ? [...sampling, "hostedTrainedMillionTokens"] : [...sampling];
}

/** Settings that are each valid and together mean nothing. */
function senseIssues(config: RunConfig): Issue[] {
  const issues: Issue[] = [];
  const add = (path: string, message: string, fix: string) => issues.push({ path, message, fix });
  if (config.kind === "evaluate" && config.evaluation.samples === 0)
    add("evaluation.samples", "an evaluate run samples nothing", "set evaluation.samples to at least 1");
  if (config.kind === "evaluate" && config.stepSource === "driven")
    add("stepSource", "an evaluate run has no trainer to drive it", "use planned");
  if (config.kind === "train" && config.algorithm.groupSize === 1 && config.algorithm.advantage !== "reinforce++")
    add(
      "algorithm.groupSize",
      "a group of one has no baseline to compare with",
      "use at least 2, or advantage reinforce++, which compares within the batch",
    );
  issues.push(...offPolicyIssues(config.algorithm.offPolicy));
  if (config.model.startFrom !== null && config.model.warmStart !== null)
    add(
      "model.startFrom",
      "weights come from another run or from a warm start, not from both",
      "set one of them to null",
    );
  if (measuresNothing(config))
    add(
      "checkpoints.keepBest.metric",
      "nothing measures it: evaluation.samples is 0",
      "set evaluation.samples to at least 1, or choose by reward/mean",
    );
  for (const [at, k] of config.evaluation.passAt.entries())
    if (k > config.evaluation.samplesPerInstance)
      add(
        `evaluation.passAt[${at}]`,
        `pass@${k} needs at least ${k} rollouts of an instance, there are ${config.evaluation.samplesPerInstance}`,
        `raise evaluation.samplesPerInstance to ${k}, or lower k`,
      );
  if (config.agent.sampling.maxTokensPerTurn >= config.agent.maxContextTokens)
    add(
      "agent.sampling.maxTokensPerTurn",
      `one turn may sample ${config.agent.sampling.maxTokensPerTurn} tokens, but the context holds ${config.agent.maxContextTokens}`,
      "lower it, or raise agent.maxContextTokens",
    );
  if (config.backend.endpoint !== null && hasCredentials(config.backend.endpoint))
    // The address itself is not repeated: it holds a secret.
    add("backend.endpoint", "must not hold a user name or password: configs are shown to everyone", "leave them out");
  return issues;
}

const choosesByEvaluation = ({ checkpoints: { keepBest } }: RunConfig): boolean =>
  keepBest?.metric.startsWith("evaluate/") ?? false;
const measuresNothing = (config: RunConfig): boolean =>
  config.kind === "train" && choosesByEvaluation(config) && config.evaluation.samples === 0;

function hasCredentials(address: string): boolean {
  const { username, password } = new URL(address);
  return username !== "" || password !== "";
}

function warningsFor(config: RunConfig, catalogue: CheckCatalogue): Issue[] {
  const warnings: Issue[] = [];
  for (const [at, { name, size, dataset }] of config.taskSets.entries()) {
    // How many rows a data set has is found out when it is opened.
    if (dataset !== null) continue;
    const train = catalogue.taskSets.find((task) => task.name === name)?.sizes.train ?? null;
    if (size !== null && train !== null && size > train)
      warnings.push({ path: `taskSets[${at}].size`, message: `${name} has ${train} instances`, fix: `use ${train}` });
  }
  if (config.checkpoints.every > config.budget.steps)
    warnings.push({
      path: "checkpoints.every",
      message: "no checkpoint is written before the run ends",
      fix: `use at most ${config.budget.steps}`,
    });
  const { every } = config.evaluation;
  if (choosesByEvaluation(config) && (every === 0 || config.checkpoints.every % every !== 0))
    warnings.push({
      path: "checkpoints.keepBest.metric",
      message:
        every === 0
          ? "only the first and the last version are evaluated"
          : `only one version in ${every} is evaluated: other checkpoints are never among the best`,
      fix: `set evaluation.every to ${config.checkpoints.every}, or a divisor of it`,
    });
  return warnings;
}

/** Bounds that leave nothing between them. */
function offPolicyIssues({ outlierLow, outlierHigh, tokenLow, tokenHigh }: OffPolicyConfig): Issue[] {
  const crossed = (low: number | null, high: number | null) => low !== null && high !== null && low > high;
  const pairs = [
    { path: "algorithm.offPolicy.outlierLow", above: "outlierHigh", wrong: crossed(outlierLow, outlierHigh) },
    { path: "algorithm.offPolicy.tokenLow", above: "tokenHigh", wrong: crossed(tokenLow, tokenHigh) },
  ];
  return pairs
    .filter(({ wrong }) => wrong)
    .map(({ path, above }) => ({ path, message: `is above ${above}, so nothing would be trained`, fix: "lower it" }));
}
