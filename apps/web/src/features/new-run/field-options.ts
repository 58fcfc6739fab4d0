/** Names that fields may take, by path, from the server's catalogue. Pure. */
import type { Catalogue } from "@rolldeck/contracts/api/system";

type CatalogueData = Pick<Catalogue, "taskSets" | "models" | "backends" | "dispatchers" | "dialects"> | undefined;
export function fieldOptions(catalogue: CatalogueData, backendName: unknown): Map<string, readonly string[]> {
  if (!catalogue) return new Map();
  const names = (list: readonly { readonly name: string }[]) => list.map((each) => each.name);
  return new Map<string, readonly string[]>([
    ["taskSets[].name", names(catalogue.taskSets)],
    ["model.name", names(catalogue.models)],
    ["backend.name", names(catalogue.backends)],
    ["dispatcher.name", names(catalogue.dispatchers)],
    ["agent.dialect", catalogue.dialects],
    ["algorithm.loss", catalogue.backends.find((backend) => backend.name === backendName)?.losses ?? []],
  ]);
}
