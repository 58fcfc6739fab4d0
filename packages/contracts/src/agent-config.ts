/** How a run's agent speaks, calls tools and samples. */
import { z } from "zod";
import { label } from "./label.ts";
import { callPolicies } from "./ports/task.ts";

export const SamplingConfig = z.strictObject({
  temperature: z.number().min(0).max(2).default(1).describe("Softmax temperature while sampling"),
  topP: z.number().gt(0).max(1).default(1).describe("Nucleus mass; 1 = off"),
  topK: z.int().min(-1).max(1_000_000).default(-1).describe("Keep the k likeliest tokens; −1 = off"),
  maxTokensPerTurn: z.int().min(1).max(131_072).default(1024).describe("Sampled tokens in one turn"),
});

export const hintNames = [
  "steps-left",
  "context-nearly-full",
  "malformed-call",
  "failed-edit",
  "repeated-failure",
  "dont-stop-early",
] as const;
export type HintName = (typeof hintNames)[number];

export const McpMount = z.strictObject({
  server: label(60).describe("Name in the operator's list of MCP servers"),
  prefix: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,30}$/)
    .nullable()
    .default(null)
    .describe("Put before its tools' names; null = the server's name"),
  tools: z.array(label(100)).max(100).nullable().default(null).describe("Only these tools; null = all"),
});

export const AgentConfig = z.strictObject({
  dialect: label(50).default("pythonic").describe("How the model writes tool calls"),
  maxTurns: z.int().min(1).max(1000).default(50).describe("Turns per rollout"),
  maxContextTokens: z.int().min(16).max(1_048_576).default(32_768).describe("Prompt plus sampled tokens"),
  parseRetries: z.int().min(0).max(20).default(2).describe("Turns without a usable call before the rollout ends"),
  describeTools: z.boolean().default(true).describe("Put tool descriptions into the prompt"),
  callPolicy: z
    .enum(callPolicies)
    .nullable()
    .default(null)
    .describe("Several calls in one turn: all in order, first only, or refuse; null = the task's own policy"),
  maxCallsPerTurn: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Calls of one turn that are run; the model is told of those left out"),
  onLength: z
    .enum(["end", "tell"])
    .default("end")
    .describe("A turn cut by maxTokensPerTurn ends the rollout, or the model is told that it was cut"),
  lengthRetries: z.int().min(0).max(20).default(2).describe("With onLength tell: cut turns in a row before the end"),
  hints: z
    .array(z.enum(hintNames))
    .max(hintNames.length)
    .nullable()
    .default(null)
    .describe("Hints put into observations, never trained on; null = the task's own"),
  earlyStepThreshold: z
    .int()
    .min(0)
    .max(1000)
    .default(0)
    .describe("Hint dont-stop-early: turns the agent is asked to take at least; 0 = off"),
  mcp: z.array(McpMount).max(16).default([]).describe("MCP servers whose tools every rollout gets"),
  maxOutputBytes: z.int().min(64).max(1_048_576).default(16_384).describe("Tool output shown to the model"),
  maxOutputTokens: z
    .int()
    .min(16)
    .max(1_048_576)
    .nullable()
    .default(null)
    .describe("Tool output shown to the model, tokens; null = no such limit"),
  toolTimeoutMs: z.int().min(1).max(3_600_000).default(60_000).describe("Limit of one tool call, milliseconds"),
  sampling: SamplingConfig.prefault({}),
});
