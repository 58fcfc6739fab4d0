/** The process's settings, parsed once. Only ROLLDECK_* variables count. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { endpointNames, namesJudge } from "@rolldeck/backends/endpoints/read-endpoints";
import { trainerNames } from "@rolldeck/backends/trainers/read-trainers";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import { InputError } from "@rolldeck/contracts/errors";
import { type McpServerList, parseMcpServers } from "@rolldeck/contracts/mcp-servers";
import { type Prices, parsePrices } from "@rolldeck/contracts/prices";
import { parseSandboxSettings, type SandboxSettings } from "@rolldeck/sandbox/settings";
import { z } from "zod";

const port = z.coerce.number().int().min(0).max(65_535);
/** Container files set what they do not use to nothing. */
const optional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema);

export const ApiEnv = z.object({
  ROLLDECK_DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, "must be a postgres:// address"),
  ROLLDECK_REDIS_URL: optional(z.string().optional()),
  ROLLDECK_DATA_DIR: z.string().min(1),
  ROLLDECK_HOST: optional(z.string().default("127.0.0.1")),
  ROLLDECK_PORT: optional(port.default(3000)),
  /** The GPU worker that the stack supervises, for what it has stored; absent: nothing can be exported. */
  ROLLDECK_GPU_WORKER_URL: optional(z.url({ protocol: /^https?$/ }).optional()),
  ROLLDECK_GPU_WORKER_KEY: optional(z.string().startsWith("tml-").optional()),
  /** What keys of the fleet's workers are made of; absent: what runs on the fleet saved can't be read here. */
  ROLLDECK_FLEET_SECRET: optional(z.string().min(32).optional()),
  /** Next's loopback address; absent: there are no pages, only the API. */
  ROLLDECK_WEB_URL: optional(z.url({ protocol: /^http$/ }).optional()),
  ROLLDECK_MODEL_ROOTS: optional(z.string().optional()),
  ROLLDECK_TEMPLATE_ROOTS: optional(z.string().optional()),
  /** File with the operator's list of MCP servers. */
  ROLLDECK_MCP_SERVERS: optional(z.string().optional()),
  /** File with the operator's list of endpoints; only names are read of it here. */
  ROLLDECK_ENDPOINTS: optional(z.string().optional()),
  ROLLDECK_TRAINERS: optional(z.string().optional()),
  /** What things cost here, as contracts/prices has it. */
  ROLLDECK_PRICES: optional(z.string().optional()),
  ROLLDECK_DATA_ROOTS: z.string().default(""),
  /** Names besides loopback under which browsers may reach this server, comma-separated (`deck.example.org:443`). */
  ROLLDECK_ALLOWED_HOSTS: z.string().default(""),
  ROLLDECK_ROOT: optional(z.string().optional()),
  ROLLDECK_LOG_LEVEL: optional(z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info")),
});

export interface ApiSettings {
  readonly databaseUrl: string;
  readonly redisUrl?: string;
  readonly dataFolder: string;
  readonly host: string;
  readonly port: number;
  readonly webUrl: URL | null;
  /** Read for what it has stored; the API trains and samples nothing. */
  readonly gpuWorker: { readonly url: string; readonly apiKey: string } | null;
  /** Null: this server has not the secret of the fleet's workers. */
  readonly fleetSecret: string | null;
  readonly modelRoots: readonly string[];
  /** Folders of named chat templates. */
  readonly templateRoots: readonly string[];
  /** Folders that data sets resolve under. */
  readonly dataRoots: readonly string[];
  /** The operator's list of MCP servers; empty without one. */
  readonly mcpServers: McpServerList;
  /** What configs may name of the operator's endpoints. */
  readonly servers: Catalogue["servers"];
  /** Whether one of them is a model that judges answers. */
  readonly hasJudge: boolean;
  /** Null: the operator names none. */
  readonly prices: Prices | null;
  /** Where sandboxes are that people look into. */
  readonly sandboxes: SandboxSettings;
  readonly allowedHosts: readonly string[];
  readonly logLevel: z.infer<typeof ApiEnv>["ROLLDECK_LOG_LEVEL"];
}

/** @throws ZodError that names the variable, never its value; InputError for a list of servers that can't be read */
export function readSettings(env: NodeJS.ProcessEnv): ApiSettings {
  const parsed = ApiEnv.parse(env);
  const root = parsed.ROLLDECK_ROOT ?? findRoot(process.cwd());
  const modelRoots = parsed.ROLLDECK_MODEL_ROOTS ?? join(root, "infra/models");
  const endpoints = parsed.ROLLDECK_ENDPOINTS
    ? readListed("ROLLDECK_ENDPOINTS", resolve(parsed.ROLLDECK_ENDPOINTS))
    : null;
  return {
    databaseUrl: parsed.ROLLDECK_DATABASE_URL,
    redisUrl: parsed.ROLLDECK_REDIS_URL,
    dataFolder: resolve(parsed.ROLLDECK_DATA_DIR),
    host: parsed.ROLLDECK_HOST,
    port: parsed.ROLLDECK_PORT,
    webUrl: parsed.ROLLDECK_WEB_URL ? new URL(parsed.ROLLDECK_WEB_URL) : null,
    gpuWorker: gpuWorkerOf(parsed),
    fleetSecret: parsed.ROLLDECK_FLEET_SECRET ?? null,
    modelRoots: list(modelRoots, ":"),
    templateRoots: list(parsed.ROLLDECK_TEMPLATE_ROOTS ?? join(root, "infra/chat-templates"), ":"),
    dataRoots: list(parsed.ROLLDECK_DATA_ROOTS, ":"),
    mcpServers: parsed.ROLLDECK_MCP_SERVERS ? readMcpServers(resolve(parsed.ROLLDECK_MCP_SERVERS)) : {},
    servers: [
      ...(endpoints === null ? [] : endpointNames(endpoints)),
      ...(parsed.ROLLDECK_TRAINERS
        ? trainerNames(readListed("ROLLDECK_TRAINERS", resolve(parsed.ROLLDECK_TRAINERS)))
        : []),
    ],
    hasJudge: endpoints !== null && namesJudge(endpoints),
    prices: parsed.ROLLDECK_PRICES ? parsePrices(parsed.ROLLDECK_PRICES) : null,
    sandboxes: parseSandboxSettings(env, process.cwd()),
    allowedHosts: list(parsed.ROLLDECK_ALLOWED_HOSTS, ","),
    logLevel: parsed.ROLLDECK_LOG_LEVEL,
  };
}

function gpuWorkerOf(env: z.infer<typeof ApiEnv>): ApiSettings["gpuWorker"] {
  const { ROLLDECK_GPU_WORKER_URL: url, ROLLDECK_GPU_WORKER_KEY: apiKey } = env;
  return url === undefined || apiKey === undefined ? null : { url, apiKey };
}

const list = (text: string, separator: string): string[] =>
  text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== "");

const readMcpServers = (path: string): McpServerList => parseMcpServers(readListed("ROLLDECK_MCP_SERVERS", path), path);

function readListed(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    throw new InputError([{ path: variable, message: `${path} can't be read (${why})` }]);
  }
}

/** The folder that holds turbo.json, from here upwards; where we stand when there is none. */
function findRoot(from: string): string {
  for (let folder = from; ; folder = resolve(folder, "..")) {
    if (existsSync(join(folder, "turbo.json"))) return folder;
    if (folder === resolve(folder, "..")) return from;
  }
}
