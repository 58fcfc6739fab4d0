/** The README.md of an exported checkpoint, and the same facts for programs. Pure. What is not known is said to be unknown. */
import type { ExportFormat, RelatedRun } from "@rolldeck/contracts/api/checkpoints";
import { metricDefinition } from "@rolldeck/contracts/metrics";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { stringify } from "yaml";
import type { MetricAt } from "./metrics-at.ts";

export interface CardFacts {
  readonly id: string;
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly savedAt: string;
  readonly format: ExportFormat;
  readonly config: RunConfig;
  readonly metrics: readonly MetricAt[];
  /** From the run's parent upwards. */
  readonly ancestors: readonly RelatedRun[];
  /** Of this server. */
  readonly rolldeck: string;
}

export function modelCard(facts: CardFacts): string {
  const { name, version, config, runId, savedAt } = facts;
  const head = stringify({
    license: "unknown",
    base_model: config.model.name,
    library_name: facts.format === "peft" ? "peft" : "transformers",
    pipeline_tag: "text-generation",
    tags: ["reinforcement-learning", "rolldeck"],
  });
  return `---
${head}---

# ${inline(name)}, version ${version}

The policy after ${version} optimizer ${version === 1 ? "update" : "updates"} of the run ${code(name)} (${code(runId)}), saved ${savedAt}
and exported by Rolldeck ${facts.rolldeck}.

- Base model: ${code(config.model.name)}
- Licence: unknown. That of the base model and of the data sets may bind what is made of them.
- Backend: ${code(config.backend.name)}; seed ${config.seed}
- Files: ${files(facts)}

## Data sets

${table(
  ["task", "file", "split", "weight"],
  config.taskSets.map(({ name: task, dataset, weight }) => [
    code(task),
    dataset === null ? "the task's own" : code(dataset),
    "train",
    String(weight),
  ]),
)}

## Measured

${measured(facts.metrics)}

## Lineage

${lineage(facts)}

## How it was trained

${fenced("yaml", stringify(config))}
`;
}

/** What lies beside the card, and what reads it. */
function files({ format, config: { backend } }: CardFacts): string {
  if (format === "peft")
    return `${code("adapter_model.safetensors")} and ${code("adapter_config.json")}, as ${code("peft")} reads them over the base model`;
  const merged = backend.lora === null ? "" : "; the adapter that was trained is merged into the weights";
  return `${code("model.safetensors")}, ${code("config.json")} and the tokenizer, as ${code("transformers")} reads them${merged}`;
}

/** The same facts as JSON, for programs. */
export const exportFacts = (facts: CardFacts): string =>
  `${JSON.stringify({ ...facts, format: 1, exportedAs: facts.format }, null, 2)}\n`;

function measured(metrics: readonly MetricAt[]): string {
  if (metrics.length === 0) return "Nothing was measured of this version.";
  return table(
    ["metric", "value", "step", "what it is"],
    metrics.map(({ name, value, step }) => [
      code(name),
      String(value),
      String(step),
      inline(metricDefinition(name).definition),
    ]),
  );
}

function lineage({ ancestors, runId, version, config }: CardFacts): string {
  const own = `1. Version ${version} of run ${code(runId)}`;
  const before = ancestors.map(({ relation, runId: parent, name, version: at }, place) => {
    const what = relation === "fork" ? "which began with" : "which are steps that came after";
    return `${place + 2}. ${what} version ${at ?? "unknown"} of run ${code(name)} (${code(parent)})`;
  });
  const { warmStart, name } = config.model;
  const start =
    warmStart === null || warmStart.steps === 0
      ? `the base model ${code(name)}`
      : `the base model ${code(name)} after ${warmStart.steps} supervised steps on demonstrations`;
  const end = ancestors.length === 0 ? [`2. which began with ${start}`] : [];
  return [own, ...before, ...end].join("\n");
}

/** Text of people and models, as text: no markup of it comes alive. */
const inline = (text: string): string =>
  text.replaceAll(/\s+/gu, " ").replaceAll(/[\\`*_{}[\]<>#|!~&]/gu, (character) => `&#${character.codePointAt(0)};`);

/** Fenced by more backticks than the text has in a row. */
function code(text: string): string {
  const plain = text.replaceAll(/\s+/gu, " ").replaceAll("|", "∣");
  const fence = "`".repeat(longestTicks(plain) + 1);
  return plain.includes("`") ? `${fence} ${plain} ${fence}` : `${fence}${plain}${fence}`;
}

function fenced(language: string, text: string): string {
  const fence = "`".repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

const longestTicks = (text: string): number =>
  Math.max(0, ...[...text.matchAll(/`+/gu)].map(([ticks]) => ticks.length));

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
