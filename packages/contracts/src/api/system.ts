/** Catalogue (what names mean here), system state, sign-in and API tokens. */
import { z } from "zod";
import { resources } from "../plan.ts";
import { Prices } from "../prices.ts";
import { JsonObject } from "../segments.ts";

export const Catalogue = z.object({
  taskSets: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      sandbox: z.enum(["none", "process", "image"]),
      tools: z.array(z.string()),
      sizes: z.object({ train: z.int().nullable(), evaluate: z.int().nullable() }),
      defaults: z.object({ maxTurns: z.int(), maxContextTokens: z.int() }),
    }),
  ),
  tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: JsonObject })),
  dialects: z.array(z.string()),
  dispatchers: z.array(z.object({ name: z.string(), description: z.string() })),
  backends: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      losses: z.array(z.string()),
      unsupported: z.array(z.object({ path: z.string(), reason: z.string() })),
      /** Its server tells what its engine bears: requests that run and wait, and how full its cache is. */
      load: z.boolean(),
      /** Updates and sampling have devices of their own. */
      overlap: z.boolean(),
    }),
  ),
  models: z.array(z.object({ name: z.string(), description: z.string() })),
  /** Names that `model.chatTemplate` may have. */
  chatTemplates: z.array(z.string()),
  /** MCP servers of the operator's list; `refusal` says why a run can't have one, null when it can. */
  mcpServers: z.array(z.object({ name: z.string(), refusal: z.string().nullable() })),
  /** The operator's endpoints that `backend.server` may name, with the backend each is for. */
  servers: z.array(z.object({ name: z.string(), backend: z.string() })),
  /** What things cost here; null: the operator names no prices. */
  prices: Prices.nullable(),
  presets: z.array(z.object({ name: z.string(), title: z.string(), summary: z.string(), config: z.unknown() })),
  /** JSON Schema of RunConfig with descriptions and defaults. */
  configSchema: z.unknown(),
});
export type Catalogue = z.infer<typeof Catalogue>;

export const SystemState = z.object({
  version: z.string(),
  now: z.string(),
  database: z.object({ kind: z.enum(["embedded", "external"]), ok: z.boolean() }),
  queue: z.object({ kind: z.enum(["postgres", "redis"]), ok: z.boolean() }),
  workers: z.array(z.object({ workerId: z.string(), lastSeenAt: z.string(), alive: z.boolean(), stages: z.int() })),
  gpuWorkers: z.array(
    z.object({
      name: z.string(),
      state: z.enum(["installing", "starting", "ready", "lost", "absent", "failed"]),
      message: z.string(),
      done: z.number().nullable(),
      total: z.number().nullable(),
      unit: z.string().nullable(),
      elapsedMs: z.number().nullable(),
      device: z.string().nullable(),
      bootId: z.string().nullable(),
      lastSeenAt: z.string().nullable(),
    }),
  ),
  pools: z.array(
    z.object({
      resource: z.enum(resources),
      size: z.int(),
      /** Held by rollouts. */
      used: z.int(),
      /** Held by sandboxes that stay for people. */
      kept: z.int(),
    }),
  ),
});
export type SystemState = z.infer<typeof SystemState>;

export const Me = z.object({ name: z.string(), kind: z.enum(["owner", "token"]), scopes: z.array(z.string()) });
export const tokenScopes = ["read", "write"] as const;
export type TokenScope = (typeof tokenScopes)[number];
export const CreateToken = z.strictObject({
  name: z.string().trim().min(1).max(100),
  scope: z.enum(tokenScopes).default("write"),
});
export const TokenInfo = z.object({
  tokenId: z.string(),
  name: z.string(),
  scope: z.enum(tokenScopes),
  createdAt: z.string(),
  lastUsedAt: z.string().nullable(),
});
/** The secret is shown once. */
export const CreatedToken = TokenInfo.extend({ secret: z.string() });
export const TokenRef = z.strictObject({ tokenId: z.string().max(40) });

/** A one-time sign-in link's code; `path` is relative to the server's address. */
export const SignInCode = z.object({ code: z.string(), path: z.string(), expiresAt: z.string() });
export type SignInCode = z.infer<typeof SignInCode>;
