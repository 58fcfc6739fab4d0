/**
 * A server's tools as a rollout's tools. Pure. Invariants: every name is one that any chat API takes (letters, digits, `_`, `-`,
 * at most 64), no two are alike, and their order is always the same; a filter names only tools that are there.
 */
import type { Tool as McpTool } from "@modelcontextprotocol/sdk/types.js";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { JsonObject } from "@rolldeck/contracts/segments";

export interface Mounting {
  readonly server: string;
  /** Before every name, with two underscores. */
  readonly prefix: string;
  /** The server's own names; null = all. */
  readonly only: readonly string[] | null;
  readonly idempotent: boolean;
  readonly stateful: boolean;
  call(name: string, args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

const maxName = 64;

/** @throws BoundaryError("infrastructure") when what was asked for can't be mounted: the rollout can't be run as configured */
export function mountTools(listed: readonly McpTool[], mounting: Mounting): Tool[] {
  const { only, server } = mounting;
  const missing = only?.find((name) => !listed.some((tool) => tool.name === name));
  if (missing !== undefined) {
    const names = listed.map(({ name }) => name).join(", ");
    throw cannot(`MCP server ${server} has no tool ${JSON.stringify(missing)}; it has: ${names.slice(0, 500)}`);
  }
  const tools = listed.filter(({ name }) => only?.includes(name) ?? true).map((tool) => mounted(tool, mounting));
  // Servers may tell in any order; a prompt that names the tools must not change with it.
  tools.sort((one, other) => (one.name < other.name ? -1 : 1));
  refuseDoubles(tools);
  return tools;
}

/** @throws BoundaryError("infrastructure") naming the first name that two tools have */
export function refuseDoubles(tools: readonly Tool[]): void {
  const seen = new Set<string>();
  for (const { name } of tools) {
    if (seen.has(name)) throw cannot(`two tools are named ${name}: give the MCP server another prefix`);
    seen.add(name);
  }
}

function mounted(tool: McpTool, { prefix, idempotent, stateful, call }: Mounting): Tool {
  return {
    name: `${prefix}__${tool.name}`.replaceAll(/[^A-Za-z0-9_-]/gu, "_").slice(0, maxName),
    description: tool.description ?? tool.title ?? tool.name,
    parameters: JsonObject.parse(tool.inputSchema),
    idempotent,
    stateful,
    call: (args, context) => call(tool.name, args, context),
  };
}

const cannot = (message: string): BoundaryError => new BoundaryError("infrastructure", "mcp_mount", message);
