/** Names that fields may take, by path, from the server's catalogue. Pure. */
import type { Catalogue } from "@rolldeck/contracts/api/system";

type CatalogueData =
  | Pick<Catalogue, "taskSets" | "models" | "backends" | "dispatchers" | "dialects" | "chatTemplates" | "servers">
  | undefined;
export function fieldOptions(catalogue: CatalogueData, backendName: unknown): Map<string, readonly string[]> {
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
export function fieldNotes(catalogue: Pick<Catalogue, "mcpServers"> | undefined): Map<string, string> {
  if (!catalogue) return new Map();
  const servers = catalogue.mcpServers.map(({ name, refusal }) =>
    refusal === null ? name : `${name} (refused: ${refusal})`,
  );
  return new Map([
    [
      "agent.mcp",
      servers.length === 0 ? "The operator's list is empty." : `The operator's list: ${servers.join(", ")}.`,
    ],
  ]);
}
