/** Where a run's model lives and what of it is trained. */
import { z } from "zod";
import { FleetDemand } from "./fleet.ts";
import { label } from "./label.ts";

/** Kinds of servers that speak the Tinker protocol and differ in what they make of the same request. */
export const tinkerServers = ["skyrl", "hosted"] as const;

export const BackendConfig = z.strictObject({
  name: label(100).default("gpu-worker").describe("Backend in the catalogue"),
  dialect: z
    .enum(tinkerServers)
    .nullable()
    .default(null)
    .describe(
      "Backend tinker: which server it is, SkyRL's with its JAX backend or the hosted service; null = another backend",
    ),
  lora: z
    .strictObject({
      rank: z.int().min(1).max(512).default(32).describe("Rank of the adapter; the server has an upper bound"),
    })
    .nullable()
    .default(null)
    .describe("Train a low-rank adapter beside frozen weights; null = all weights"),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .nullable()
    .default(null)
    .describe("Address; null = the one this server supervises"),
  server: label(60)
    .nullable()
    .default(null)
    .describe("Name in the operator's list of endpoints, instead of an address; null = none"),
  awayMinutes: z
    .number()
    .positive()
    .max(10_080)
    .nullable()
    .default(null)
    .describe(
      "Minutes without an answer after which the run fails, of a server by address or name; null = 5 before its first answer, 60 later",
    ),
  fleet: FleetDemand.nullable()
    .default(null)
    .describe("GPU workers of the run's own on the fleet's hosts; null = a server that is there already"),
});
export type BackendConfig = z.infer<typeof BackendConfig>;
