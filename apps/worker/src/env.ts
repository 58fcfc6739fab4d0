/** The environment of a worker process, parsed once. Nothing else reads `process.env`. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { type Prices, parsePrices } from "@rolldeck/contracts/prices";
import { parseSandboxSettings, type SandboxSettings } from "@rolldeck/sandbox/settings";
import { z } from "zod";

const blankAsAbsent = (value: unknown) => (value === "" ? undefined : value);
const Port = z.coerce.number().int().min(0).max(65_535);

const Variables = z.object({
  ROLLDECK_DATABASE_URL: z.string().min(1),
  ROLLDECK_REDIS_URL: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_GPU_WORKER_URL: z.preprocess(blankAsAbsent, z.url({ protocol: /^https?$/ }).optional()),
  ROLLDECK_GPU_WORKER_KEY: z.preprocess(blankAsAbsent, z.string().startsWith("tml-").optional()),
  /** What keys of the fleet's workers are made of. */
  ROLLDECK_FLEET_SECRET: z.preprocess(blankAsAbsent, z.string().min(32).optional()),
  ROLLDECK_MODEL_ROOTS: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_TEMPLATE_ROOTS: z.preprocess(blankAsAbsent, z.string().optional()),
  /** The operator's list of endpoints: a YAML or JSON file. */
  ROLLDECK_ENDPOINTS: z.preprocess(blankAsAbsent, z.string().optional()),
  /** The operator's list of trainers: a YAML or JSON file. */
  ROLLDECK_TRAINERS: z.preprocess(blankAsAbsent, z.string().optional()),
  /** The operator's list of MCP servers: a JSON file. */
  ROLLDECK_MCP_SERVERS: z.preprocess(blankAsAbsent, z.string().optional()),
  /** What things cost here, as contracts/prices has it. */
  ROLLDECK_PRICES: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_DATA_ROOTS: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_DATA_DIR: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_ROOT: z.preprocess(blankAsAbsent, z.string().optional()),
  ROLLDECK_WORKER_CONCURRENCY: z.preprocess(blankAsAbsent, z.coerce.number().int().min(1).max(8192).default(512)),
  /** Loopback port of /healthz and /metrics; absent = none. */
  ROLLDECK_WORKER_PORT: z.preprocess(blankAsAbsent, Port.optional()),
  ROLLDECK_LOG_LEVEL: z.preprocess(
    blankAsAbsent,
    z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  ),
});

export interface WorkerEnv {
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  readonly gpuWorker: { readonly url: string; readonly apiKey: string } | null;
  /** Null: runs on the fleet can't be worked for here. */
  readonly fleetSecret: string | null;
  /** Absolute path of the operator's list of endpoints, or null. */
  readonly endpointsFile: string | null;
  /** Absolute path of the operator's list of trainers, or null. */
  readonly trainersFile: string | null;
  /** Absolute path of the operator's list of MCP servers, or null. */
  readonly mcpServersFile: string | null;
  /** A variable that one of the operator's lists names as holding a key. */
  readonly variable: (name: string) => string | undefined;
  /** Folders that model names resolve under. */
  readonly modelRoots: readonly string[];
  /** Folders of named chat templates. */
  readonly templateRoots: readonly string[];
  /** Folders that data sets resolve under. */
  readonly dataRoots: readonly string[];
  /** Null: the operator names none. */
  readonly prices: Prices | null;
  readonly sandbox: SandboxSettings;
  /** Absolute path of a folder of the deployment's own, where runtimes may keep what they know of their sandboxes. */
  readonly stateFolder: string;
  readonly concurrency: number;
  readonly port: number | null;
  readonly logLevel: string;
}

/** @throws InputError naming each variable that is missing or malformed; values are not repeated (they may be secrets). */
export function parseWorkerEnv(variables: Readonly<Record<string, string | undefined>>, cwd: string): WorkerEnv {
  const parsed = Variables.safeParse(variables);
  if (!parsed.success) {
    throw new InputError(parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message })));
  }
  const env = parsed.data;
  const root = env.ROLLDECK_ROOT ?? repositoryRoot(cwd);
  const folders = (list: string | undefined) => list?.split(":").filter((folder) => folder !== "");
  return {
    databaseUrl: env.ROLLDECK_DATABASE_URL,
    redisUrl: env.ROLLDECK_REDIS_URL ?? null,
    gpuWorker: gpuWorkerOf(env.ROLLDECK_GPU_WORKER_URL, env.ROLLDECK_GPU_WORKER_KEY),
    fleetSecret: env.ROLLDECK_FLEET_SECRET ?? null,
    endpointsFile: env.ROLLDECK_ENDPOINTS === undefined ? null : resolve(cwd, env.ROLLDECK_ENDPOINTS),
    trainersFile: env.ROLLDECK_TRAINERS === undefined ? null : resolve(cwd, env.ROLLDECK_TRAINERS),
    mcpServersFile: env.ROLLDECK_MCP_SERVERS === undefined ? null : resolve(cwd, env.ROLLDECK_MCP_SERVERS),
    variable: (name) => variables[name],
    modelRoots: folders(env.ROLLDECK_MODEL_ROOTS) ?? [join(root, "infra/models")],
    templateRoots: folders(env.ROLLDECK_TEMPLATE_ROOTS) ?? [join(root, "infra/chat-templates")],
    dataRoots: folders(env.ROLLDECK_DATA_ROOTS) ?? [],
    prices: env.ROLLDECK_PRICES === undefined ? null : parsePrices(env.ROLLDECK_PRICES),
    sandbox: parseSandboxSettings(variables, cwd),
    stateFolder: join(resolve(cwd, env.ROLLDECK_DATA_DIR ?? join(root, "node_modules/.cache/rolldeck")), "sandboxes"),
    concurrency: env.ROLLDECK_WORKER_CONCURRENCY,
    port: env.ROLLDECK_WORKER_PORT ?? null,
    logLevel: env.ROLLDECK_LOG_LEVEL,
  };
}

function gpuWorkerOf(url: string | undefined, apiKey: string | undefined): WorkerEnv["gpuWorker"] {
  if (url === undefined) return null;
  if (apiKey === undefined) {
    throw new InputError([{ path: "ROLLDECK_GPU_WORKER_KEY", message: "is needed with ROLLDECK_GPU_WORKER_URL" }]);
  }
  return { url, apiKey };
}

/** The nearest folder upwards that holds turbo.json; the folder itself when there is none. */
function repositoryRoot(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "turbo.json"))) return folder;
    if (dirname(folder) === folder) return from;
  }
}
