/** What names mean on this server: registries are fixed at start, model folders are looked at when asked. */
import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { dialects } from "@rolldeck/agent/core/registry";
import { listTemplates } from "@rolldeck/agent/io/named-templates";
import { refusedSettings } from "@rolldeck/backends/capabilities";
import { backends, findBackend } from "@rolldeck/backends/registry";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import { type McpServerList, mcpRefusal } from "@rolldeck/contracts/mcp-servers";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { dispatchers } from "@rolldeck/dispatch/registry";
import { tasks } from "@rolldeck/tasks/registry";
import { tools } from "@rolldeck/tools/registry";
import { z } from "zod";
import type { CheckCatalogue } from "./catalogue-issues.ts";
import { configSchema } from "./schema-keys.ts";

type Models = Catalogue["models"];

export interface CatalogueSources {
  /** Folders of models, and of named chat templates. */
  readonly models: readonly string[];
  readonly templates: readonly string[];
  /** Absent: none. */
  readonly mcpServers?: McpServerList;
  /** The operator's endpoints by name; absent: none. */
  readonly servers?: Catalogue["servers"];
  /** Absent: the operator names none. */
  readonly prices?: Catalogue["prices"];
}

export function createCatalogue(sources: CatalogueSources): {
  get: () => Promise<Catalogue>;
  forCheck: () => Promise<CheckCatalogue>;
} {
  const fixed = fixedNames();
  const mcpServers = Object.entries(sources.mcpServers ?? {}).map(([name, server]) => ({
    name,
    refusal: mcpRefusal(server),
  }));
  const get = async (): Promise<Catalogue> => ({
    ...fixed,
    models: await findModels(sources.models),
    chatTemplates: await listTemplates(sources.templates),
    mcpServers,
    servers: sources.servers ?? [],
    prices: sources.prices ?? null,
  });
  return {
    get,
    forCheck: async () => ({ ...(await get()), refusedSettings: refusedByBackend }),
  };
}

/** Settings of a config that its backend can't honour. */
export function refusedByBackend(config: RunConfig) {
  const backend = findBackend(config.backend.name);
  return backend ? refusedSettings(backend, config) : [];
}

function fixedNames(): Omit<Catalogue, "models" | "chatTemplates" | "mcpServers" | "servers" | "prices"> {
  return {
    taskSets: Object.entries<Task>(tasks).map(([name, task]) => ({
      name,
      description: task.description,
      sandbox: task.sandbox,
      tools: [...task.tools],
      sizes: { train: task.size("train"), evaluate: task.size("evaluate") },
      defaults: task.defaults,
    })),
    tools: Object.entries<Tool>(tools).map(([name, { description, parameters }]) => ({
      name,
      description,
      parameters,
    })),
    dialects: Object.keys(dialects),
    dispatchers: Object.entries(dispatchers).map(([name, { description }]) => ({ name, description })),
    backends: Object.entries(backends).map(([name, backend]) => ({
      name,
      description: backend.description,
      losses: [...backend.losses],
      unsupported: backend.limits.map(({ path, reason }) => ({ path, reason })),
      load: backend.load,
      overlap: backend.overlap,
    })),
    presets: Object.entries(presets).map(([name, { title, summary, config }]) => ({ name, title, summary, config })),
    configSchema,
  };
}

const ModelFile = z.object({
  architectures: z.array(z.string()).optional(),
  num_hidden_layers: z.number().optional(),
  hidden_size: z.number().optional(),
  vocab_size: z.number().optional(),
});

/** Folders with a config and a tokenizer, `name` or `org/name` under a root; the first root that has a name wins. */
async function findModels(roots: readonly string[]): Promise<Models> {
  const models = new Map<string, Models[number]>();
  for (const root of roots)
    for (const name of await modelNames(root)) {
      if (models.has(name)) continue;
      const description = await describeModel(join(root, name));
      if (description !== null) models.set(name, { name, description });
    }
  return [...models.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function modelNames(root: string): Promise<string[]> {
  const names: string[] = [];
  for (const name of await folders(root)) {
    names.push(name);
    for (const inner of await folders(join(root, name))) names.push(`${name}/${inner}`);
  }
  return names;
}

/** Visible subfolders (links are followed later, when one is opened); none when the folder can't be read. */
async function folders(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
      .map((entry) => entry.name);
  } catch {
    // A root that does not exist has no models: the page says which names there are.
    return [];
  }
}

/** null: not a model folder. */
async function describeModel(folder: string): Promise<string | null> {
  try {
    await access(join(folder, "tokenizer.json"));
    const file = ModelFile.parse(JSON.parse(await readFile(join(folder, "config.json"), "utf8")));
    const facts = [
      file.architectures?.[0],
      file.num_hidden_layers && `${file.num_hidden_layers} layers`,
      file.hidden_size && `hidden size ${file.hidden_size}`,
      file.vocab_size && `vocabulary ${file.vocab_size}`,
    ];
    return facts.filter(Boolean).join(", ");
  } catch {
    return null;
  }
}
