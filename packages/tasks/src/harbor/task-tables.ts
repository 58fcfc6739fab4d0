/** The tables of task.toml as they are written. Keys that are not here are told, not refused. */
import { z } from "zod";

const week = 7 * 24 * 3600;
const Seconds = z.number().positive().max(week);
const Waiting = z.number().min(0).max(week);
const User = z
  .union([z.int().min(0), z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$/u, "is no user's name or number")])
  .transform(String);
const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/u, "is no variable's name");
export const Variables = z.record(
  VariableName,
  z.union([z.string().max(100_000), z.number(), z.boolean()]).transform(String),
);
const Host = z
  .string()
  .regex(
    /^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?(?::[0-9]{1,5})?$/u,
    "is no host such as example.org or *.example.org",
  )
  .transform((host) => host.toLowerCase());
const AbsolutePath = z
  .string()
  .regex(/^\/[^\0\n]*$/u, "must be an absolute path")
  .max(1000);
const Network = {
  network_mode: z.enum(["public", "no-network", "allowlist"]).optional(),
  allowed_hosts: z.array(Host).max(1000).optional(),
};

export const HealthcheckTable = z.object({
  command: z.string().min(1),
  interval_sec: Waiting.default(5),
  timeout_sec: Seconds.default(30),
  start_period_sec: Waiting.default(0),
  start_interval_sec: Waiting.default(5),
  retries: z.int().min(1).max(1000).default(3),
});
export const McpServerTable = z.object({
  name: z.string().min(1),
  transport: z.enum(["stdio", "sse", "streamable-http", "http"]).default("sse"),
  url: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).default([]),
});
export const EnvironmentTable = z.object({
  build_timeout_sec: Seconds.default(600),
  docker_image: z.string().min(1).max(500).optional(),
  os: z
    .string()
    .transform((name) => name.toLowerCase())
    .default("linux"),
  workdir: AbsolutePath.optional(),
  cpus: z.number().positive().max(512).optional(),
  memory_mb: z.int().min(16).max(1_048_576).optional(),
  storage_mb: z.int().min(16).max(10_485_760).optional(),
  gpus: z.int().min(0).optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.object({ type: z.string(), topology: z.string() }).optional(),
  env: Variables.default({}),
  skills_dir: z.string().optional(),
  ...Network,
  healthcheck: HealthcheckTable.optional(),
  mcp_servers: z.array(McpServerTable).max(100).default([]),
  memory: z.string().optional(),
  storage: z.string().optional(),
  allow_internet: z.boolean().optional(),
});
export const CollectTable = z.object({
  command: z.string().min(1),
  service: z.string().default("main"),
  timeout_sec: Seconds.default(60),
  user: User.optional(),
});
export const VerifierTable = z.object({
  timeout_sec: Seconds.optional(),
  env: Variables.default({}),
  user: User.optional(),
  ...Network,
  environment_mode: z.enum(["shared", "separate"]).optional(),
  environment: EnvironmentTable.optional(),
  collect: z.array(CollectTable).max(100).optional(),
});
export const AgentTable = z.object({ timeout_sec: Seconds.optional(), user: User.optional(), ...Network });
export const ArtifactTable = z.object({
  source: z.string().min(1).max(1000),
  destination: z.string().optional(),
  exclude: z.array(z.string().max(500)).max(100).default([]),
  service: z.string().default("main"),
});
const Artifacts = z
  .array(z.union([z.string().min(1).max(1000), ArtifactTable]))
  .max(100)
  .default([]);
export const StepTable = z.object({
  /** Names a folder. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/u, "is no name of a folder"),
  agent: AgentTable.prefault({}),
  verifier: VerifierTable.prefault({}),
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: HealthcheckTable.optional(),
  artifacts: Artifacts,
});
export const TaskTable = z.object({
  schema_version: z.union([z.string(), z.number()]).transform(String).optional(),
  version: z.union([z.string(), z.number()]).transform(String).optional(),
  source: z.string().optional(),
  artifacts: Artifacts,
  multi_step_reward_strategy: z.enum(["mean", "final"]).optional(),
  task: z
    .object({
      name: z.string(),
      version: z.string().optional(),
      description: z.string().optional(),
      authors: z.array(z.unknown()).optional(),
      keywords: z.array(z.string()).optional(),
    })
    .optional(),
  /** Free-form: nothing in it is unknown. */
  metadata: z.record(z.string(), z.unknown()).optional(),
  agent: AgentTable.prefault({}),
  verifier: VerifierTable.prefault({}),
  environment: EnvironmentTable.prefault({}),
  solution: z.object({ env: Variables.default({}) }).prefault({}),
  steps: z.array(StepTable).max(1000).optional(),
});
