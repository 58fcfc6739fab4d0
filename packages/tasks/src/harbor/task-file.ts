/**
 * task.toml of a Harbor task, schemas 1.0 to 1.4 with the old keys: text in, one shape out. Invariants: a key that is not known is
 * a warning that names it, never an error; a value that can't be right is an error that names its key; nothing is read from the
 * host here (`${NAME}` stays as it is written).
 */
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import { parse } from "smol-toml";
import type { z } from "zod";
import { readNetwork, type TaskNetwork } from "./network.ts";
import { type EnvironmentTable, StepTable, TaskTable, type VerifierTable } from "./task-tables.ts";
import { unknownKeys } from "./unknown-keys.ts";

export type StringMap = Readonly<Record<string, string>>;

export interface TaskHealthcheck {
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly startPeriodMs: number;
  readonly startIntervalMs: number;
  readonly retries: number;
}
export interface TaskEnvironment {
  readonly dockerImage: string | null;
  readonly buildTimeoutMs: number;
  readonly workdir: string | null;
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly diskMb: number | null;
  readonly network: TaskNetwork;
  readonly variables: StringMap;
  readonly healthcheck: TaskHealthcheck | null;
  readonly mcpServers: readonly { readonly name: string; readonly at: string }[];
  readonly skillsFolder: string | null;
}
export interface CollectHook {
  readonly command: string;
  readonly timeoutMs: number;
  readonly user: string | null;
}
export interface Artifact {
  readonly source: string;
  readonly exclude: readonly string[];
}
/** One thing that is asked of the agent and graded: a single-step task has one, without a name. */
export interface TaskStep {
  readonly name: string | null;
  readonly agentTimeoutMs: number | null;
  readonly verifier: {
    readonly separate: boolean;
    readonly timeoutMs: number;
    readonly variables: StringMap;
    /** Null = as the task says for its environment. */
    readonly user: string | null;
    readonly network: TaskNetwork | null;
    /** Of a separate verifier; null = as the agent's. */
    readonly environment: TaskEnvironment | null;
    readonly collect: readonly CollectHook[];
  };
  /** By key of the reward file; below one of them the steps after this one are not run. */
  readonly minReward: Readonly<Record<string, number>> | null;
  readonly healthcheck: TaskHealthcheck | null;
  readonly artifacts: readonly Artifact[];
}
export interface TaskFile {
  readonly schemaVersion: string;
  readonly agent: { readonly user: string | null; readonly network: TaskNetwork | null };
  readonly environment: TaskEnvironment;
  readonly solutionVariables: StringMap;
  readonly rewardStrategy: "mean" | "final";
  readonly multiStep: boolean;
  readonly steps: readonly TaskStep[];
}

/** @param where named in messages @throws InputError at `dataset`, one issue per key */
export function parseTaskFile(text: string, where: string): { readonly file: TaskFile; readonly warnings: string[] } {
  const raw = parseToml(text, where);
  const parsed = TaskTable.safeParse(raw);
  if (!parsed.success) {
    throw new InputError(parsed.error.issues.map(({ path, message }) => issueAt(where, path, message)));
  }
  const warnings = unknownKeys(raw, TaskTable).map((key) => `${where}: ${key} is not known and has no effect`);
  const version = parsed.data.schema_version ?? parsed.data.version ?? "1.4";
  if (isNewer(version))
    warnings.push(`${where}: schema_version ${version} is newer than 1.4; what is new in it has no effect`);
  const troubles: string[] = [];
  const file = readFile(parsed.data, version, (message) => troubles.push(message));
  if (troubles.length > 0) throw new InputError(troubles.map((message) => issueAt(where, [], message)));
  return { file, warnings };
}

function parseToml(text: string, where: string): unknown {
  try {
    return parse(text, { unsafeKeyBehaviour: "throw", maxDepth: 50 });
  } catch (cause) {
    throw new InputError([
      issueAt(where, [], `is no TOML: ${cause instanceof Error ? firstLine(cause.message) : "?"}`),
    ]);
  }
}
const firstLine = (text: string): string => text.split("\n")[0] ?? "";

const issueAt = (where: string, path: readonly PropertyKey[], message: string): InputIssue => ({
  path: "dataset",
  message: path.length === 0 ? `${where}: ${message}` : `${where}: ${path.map(String).join(".")}: ${message}`,
});

/** Versions are compared number by number; one that is no such list is not compared. */
function isNewer(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 1 || (major === 1 && minor > 4);
}
const isOld = (version: string): boolean => ["1", "1.0", "1.1"].includes(version);

type Refuse = (message: string) => void;

function readFile(table: z.output<typeof TaskTable>, version: string, refuse: Refuse): TaskFile {
  const steps = table.steps ?? [];
  const names = steps.map(({ name }) => name);
  if (new Set(names).size < names.length) refuse("steps: two have one name");
  const users = new Set(steps.map(({ agent }) => agent.user ?? table.agent.user ?? null));
  if (users.size > 1) refuse("steps.agent.user: the steps of a task have one user here");
  const networks = steps.filter(({ agent }) => agent.network_mode !== undefined);
  if (networks.length > 0) refuse("steps.agent.network_mode: a sandbox has one network for all steps");
  const single = StepTable.parse({ name: "single" });
  const file: TaskFile = {
    schemaVersion: version,
    agent: { user: [...users][0] ?? table.agent.user ?? null, network: readNetwork(table.agent) },
    environment: readEnvironment(table.environment, version, "environment", refuse),
    solutionVariables: table.solution.env,
    rewardStrategy: table.multi_step_reward_strategy ?? "mean",
    multiStep: steps.length > 0,
    steps:
      steps.length === 0
        ? [readStep(table, single, version, refuse)]
        : steps.map((step) => readStep(table, step, version, refuse)),
  };
  const gated = file.steps.slice(0, -1).find(({ verifier, minReward }) => verifier.separate && minReward !== null);
  if (gated !== undefined) refuse(`steps.${gated.name}: min_reward is not known in time with a separate verifier`);
  return file;
}

function readStep(
  table: z.output<typeof TaskTable>,
  step: z.output<typeof StepTable>,
  version: string,
  refuse: Refuse,
): TaskStep {
  const multi = table.steps !== undefined && table.steps.length > 0;
  const own = multi ? step.verifier : table.verifier;
  const base = table.verifier;
  const environment = own.environment ?? base.environment;
  const where = multi ? `steps.${step.name}` : "";
  const mode = own.environment_mode ?? (own.environment ? "separate" : base.environment_mode);
  const separate = mode === undefined ? environment !== undefined : mode === "separate";
  refuseMixed(own, `${where}${multi ? "." : ""}verifier`, refuse);
  return {
    name: multi ? step.name : null,
    agentTimeoutMs: milliseconds(step.agent.timeout_sec ?? table.agent.timeout_sec),
    verifier: {
      separate,
      timeoutMs: (own.timeout_sec ?? base.timeout_sec ?? 600) * 1000,
      variables: { ...base.env, ...own.env },
      user: own.user ?? base.user ?? null,
      network: readNetwork(own) ?? readNetwork(base),
      environment:
        environment && separate ? readEnvironment(environment, version, "verifier.environment", refuse) : null,
      collect: (own.collect ?? base.collect ?? []).map((hook) => readHook(hook, refuse)),
    },
    minReward: typeof step.min_reward === "number" ? { reward: step.min_reward } : (step.min_reward ?? null),
    healthcheck: readHealthcheck(step.healthcheck),
    artifacts: [...table.artifacts, ...step.artifacts].map((artifact) => readArtifact(artifact, refuse)),
  };
}

function refuseMixed(verifier: z.output<typeof VerifierTable>, where: string, refuse: Refuse): void {
  if (verifier.environment_mode === "shared" && verifier.environment !== undefined) {
    refuse(`${where}.environment: there is none with environment_mode "shared"`);
  }
}

function readHook(hook: NonNullable<z.output<typeof VerifierTable>["collect"]>[number], refuse: Refuse): CollectHook {
  if (hook.service !== "main")
    refuse(`verifier.collect.service: commands are run in main alone, not in ${hook.service}`);
  return { command: hook.command, timeoutMs: hook.timeout_sec * 1000, user: hook.user ?? null };
}

const graders = /^\/(?:tests|solution|logs\/verifier|logs)?(?:\/|$)/u;

function readArtifact(entry: z.output<typeof TaskTable>["artifacts"][number], refuse: Refuse): Artifact {
  const { source, exclude, service } =
    typeof entry === "string" ? { source: entry, exclude: [], service: "main" } : entry;
  const path = source.replace(/(?<=.)\/+$/u, "");
  if (service !== "main") refuse(`artifacts: ${source} is of service ${service}; artifacts are taken from main alone`);
  if (path.split("/").includes("..")) refuse(`artifacts: ${source} holds ..`);
  if (graders.test(path) && !/^\/logs\/(?:artifacts|agent)(?:\/|$)/u.test(path)) {
    refuse(`artifacts: ${source} would come over the verifier's own files`);
  }
  return { source: path, exclude };
}

function readEnvironment(
  table: z.output<typeof EnvironmentTable>,
  version: string,
  where: string,
  refuse: Refuse,
): TaskEnvironment {
  if (table.os !== "linux") refuse(`${where}.os: sandboxes run linux, not ${table.os}`);
  if ((table.gpus ?? 0) > 0) refuse(`${where}.gpus: sandboxes have no GPU`);
  if (table.tpu !== undefined) refuse(`${where}.tpu: sandboxes have no TPU`);
  const old = isOld(version);
  const size = (key: "memory" | "storage", value: number | undefined): number | null => {
    const legacy = table[key] === undefined ? undefined : megabytes(table[key]);
    if (legacy === null) refuse(`${where}.${key}: is no size such as "2G" or "512M"`);
    else if (legacy !== undefined && value !== undefined && legacy !== value) {
      refuse(`${where}.${key}: says other than ${key}_mb`);
    }
    return value ?? legacy ?? null;
  };
  return {
    dockerImage: table.docker_image ?? null,
    buildTimeoutMs: table.build_timeout_sec * 1000,
    workdir: table.workdir ?? null,
    cpus: table.cpus ?? (old ? 1 : null),
    memoryMb: size("memory", table.memory_mb) ?? (old ? 2048 : null),
    diskMb: size("storage", table.storage_mb) ?? (old ? 10_240 : null),
    network: readNetwork(table) ?? (table.allow_internet === false ? { mode: "none" } : { mode: "public" }),
    variables: table.env,
    healthcheck: readHealthcheck(table.healthcheck),
    mcpServers: table.mcp_servers.map(({ name, url, command, args }) => ({
      name,
      at: url ?? [command, ...args].join(" "),
    })),
    skillsFolder: table.skills_dir ?? null,
  };
}

function readHealthcheck(table: z.output<typeof EnvironmentTable>["healthcheck"]): TaskHealthcheck | null {
  if (table === undefined) return null;
  return {
    command: table.command,
    intervalMs: table.interval_sec * 1000,
    timeoutMs: table.timeout_sec * 1000,
    startPeriodMs: table.start_period_sec * 1000,
    startIntervalMs: table.start_interval_sec * 1000,
    retries: table.retries,
  };
}

const milliseconds = (seconds: number | undefined): number | null => (seconds === undefined ? null : seconds * 1000);

/** MiB of "2G", "512M", "1.5g" or "4096K"; null for anything else. */
export function megabytes(text: string): number | null {
  const match = /^([0-9]+(?:\.[0-9]+)?)([GMK])(?:i?B)?$/iu.exec(text.trim());
  if (match === null) return null;
  const [, amount = "0", unit = "M"] = match;
  const factor = { G: 1024, M: 1, K: 1 / 1024 }[unit.toUpperCase()] ?? 1;
  return Math.floor(Number(amount) * factor);
}
