/**
 * Sandbox specs as they go over the wire, with the limits on what a client may ask. They name no folder of anyone's disk: mounts
 * don't travel, and a build context travels by the hash of its content, sent beforehand.
 */
import { createHash } from "node:crypto";
import { sandboxIdPattern } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import { Labels } from "./frames.ts";

export const SandboxId = z.string().regex(sandboxIdPattern);
export const ContentHash = z.string().regex(/^[0-9a-f]{64}$/);

const dayMs = 86_400_000;
const path = z.string().min(1).max(4096);
const user = z.string().min(1).max(100);
/** Longer than any kernel takes: those that are too long for it fail as commands do. */
const argument = z.string().max(2_097_152);
export const Environment = z
  .record(z.string().min(1).max(1000), z.string().max(131_072))
  .refine((all) => Object.keys(all).length <= 500, "at most 500 variables");
export const CommandLine = z.array(argument).min(1).max(2000);

export const WireImage = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("name"), name: z.string().min(1).max(500) }),
  z.strictObject({
    kind: z.literal("context"),
    hash: ContentHash,
    dockerfile: path,
    timeoutMs: z.int().min(1).max(dayMs),
  }),
]);
export type WireImage = z.infer<typeof WireImage>;

const Resources = z.strictObject({
  cpus: z.number().positive().max(1024).nullable(),
  memoryMb: z.number().positive().max(16_777_216).nullable(),
  pids: z.int().min(1).max(4_194_304).nullable(),
  diskMb: z.number().positive().max(1_073_741_824).nullable(),
});

const Network = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("none") }),
  z.strictObject({ mode: z.literal("allow-list"), hosts: z.array(z.string().min(1).max(300)).max(200) }),
  z.strictObject({ mode: z.literal("public") }),
]);

const durationMs = z.number().min(0).max(dayMs);
const Service = z.strictObject({
  name: z.string().min(1).max(100),
  image: WireImage,
  command: CommandLine.nullable(),
  environment: Environment,
  resources: Resources,
  healthcheck: z
    .strictObject({
      command: CommandLine,
      intervalMs: durationMs,
      timeoutMs: durationMs,
      startMs: durationMs,
      retries: z.int().min(0).max(10_000),
    })
    .nullable(),
});

/** Everything of a sandbox but whose it is: two of one recipe are alike until someone acts in them. */
export const WireRecipe = z.strictObject({
  image: WireImage.nullable(),
  resources: Resources,
  network: Network,
  user: user.optional(),
  workdir: path.nullable(),
  environment: Environment,
  services: z.array(Service).max(20),
  maxLifeMs: z
    .number()
    .min(1000)
    .max(30 * dayMs),
});
export type WireRecipe = z.infer<typeof WireRecipe>;

export const WireSpec = WireRecipe.extend({
  id: SandboxId,
  labels: Labels.refine((all) => Object.keys(all).length <= 20, "at most 20 labels"),
  leaseMs: z
    .number()
    .min(1000)
    .max(7 * dayMs),
});
export type WireSpec = z.infer<typeof WireSpec>;

/** What of a spec makes it like others. */
export function recipeOf(spec: WireSpec): WireRecipe {
  const { id: _id, labels: _labels, leaseMs: _leaseMs, ...recipe } = spec;
  return recipe;
}

/** Equal for equal recipes, whatever the order of their keys. */
export function recipeKey(recipe: WireRecipe): string {
  return createHash("sha256").update(canonical(recipe)).digest("hex").slice(0, 32);
}

/** Of a sandbox without an image. */
export const noImage = "none";

/** Names an image among a host's. */
export function imageKey(image: WireImage | null): string {
  if (image === null) return noImage;
  return image.kind === "name" ? image.name : `context:${image.hash}:${image.dockerfile}`;
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/** Labels that the gateway sets: whose a sandbox is, and that it was opened ahead. Clients can't set any that begin like these. */
export const reservedLabel = "remote-";
export const clientLabel = "remote-client";
export const warmLabel = "remote-warm";
