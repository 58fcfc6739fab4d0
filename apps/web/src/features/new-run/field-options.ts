/** Names that fields may take, by path, from the server's catalogue. Pure. */
import type { Catalogue } from "@rolldeck/contracts/api/system";
import type { Prices } from "@rolldeck/contracts/prices";
import { formatNumber } from "../../format/numbers.ts";

/** What the form takes from the server's catalogue. */
export type KnownNames = Pick<
  Catalogue,
  | "taskSets"
  | "models"
  | "backends"
  | "dispatchers"
  | "dialects"
  | "chatTemplates"
  | "servers"
  | "mcpServers"
  | "prices"
>;
export function fieldOptions(
  catalogue: Omit<KnownNames, "mcpServers" | "prices"> | undefined,
  backendName: unknown,
): Map<string, readonly string[]> {
  if (!catalogue) return new Map();
  const names = (list: readonly { readonly name: string }[]) => list.map((each) => each.name);
  return new Map<string, readonly string[]>([
    ["taskSets[].name", names(catalogue.taskSets)],
    ["model.name", names(catalogue.models)],
    ["model.chatTemplate", catalogue.chatTemplates],
    ["backend.name", names(catalogue.backends)],
    ["backend.server", names(catalogue.servers.filter(({ backend }) => backend === backendName))],
    ["dispatcher.name", names(catalogue.dispatchers)],
    ["agent.dialect", catalogue.dialects],
    ["algorithm.loss", catalogue.backends.find((backend) => backend.name === backendName)?.losses ?? []],
  ]);
}

/** What the server knows about fields that take more than a name, in words, by path. */
export function fieldNotes(catalogue: Pick<Catalogue, "mcpServers" | "prices"> | undefined): Map<string, string> {
  if (!catalogue) return new Map();
  const servers = catalogue.mcpServers.map(({ name, refusal }) =>
    refusal === null ? name : `${name} (refused: ${refusal})`,
  );
  return new Map([
    [
      "agent.mcp",
      servers.length === 0 ? "The operator's list is empty." : `The operator's list: ${servers.join(", ")}.`,
    ],
    ["budget.cost", priceNote(catalogue.prices)],
  ]);
}

const priced = [
  ["gpuHour", "an hour of GPU"],
  ["sandboxHour", "an hour of sandbox"],
  ["judgeMillionTokens", "a million tokens of a judge"],
  ["hostedPromptMillionTokens", "a million prompt tokens of a hosted policy"],
  ["hostedSampledMillionTokens", "a million tokens it sampled"],
  ["hostedTrainedMillionTokens", "a million tokens it trained"],
] as const satisfies readonly (readonly [keyof Prices, string])[];

/** The currency, and what is counted: what has no price costs a run nothing. */
function priceNote(prices: Prices | null): string {
  if (prices === null) return "The operator names no prices: nothing can be counted.";
  const known = priced.flatMap(([name, what]) => {
    const price = prices[name];
    return price === null ? [] : [`${what} ${formatNumber(price)}`];
  });
  return known.length === 0
    ? `In ${prices.currency}; the operator has priced nothing yet.`
    : `In ${prices.currency}: ${known.join(", ")}. What has no price is not counted.`;
}
