/** What a config asks of MCP servers that this server can't give. Pure. */
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { Catalogue } from "@rolldeck/contracts/api/system";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";

type Issue = z.output<typeof ConfigIssue>;

export function mcpIssues(config: RunConfig, servers: Catalogue["mcpServers"]): Issue[] {
  return config.agent.mcp.flatMap((mount, at) => [
    ...serverIssues(mount.server, `agent.mcp[${at}].server`, servers),
    ...prefixIssues(config, at),
  ]);
}

function serverIssues(name: string, path: string, servers: Catalogue["mcpServers"]): Issue[] {
  const server = servers.find((one) => one.name === name);
  if (server?.refusal) return [{ path, message: `MCP server ${name} can't be used: ${server.refusal}`, fix: null }];
  if (server) return [];
  const names = servers.map((one) => one.name);
  const nearest = nearestName(name, names);
  // A config names no command and no address: those are the operator's.
  const list = names.length > 0 ? `this server has: ${names.slice(0, 20).join(", ")}` : "the operator listed none";
  return [{ path, message: `no MCP server "${name}"`, fix: nearest ? `did you mean ${nearest}?` : list }];
}

/** Two mounts under one prefix may give two tools one name. */
function prefixIssues({ agent }: RunConfig, at: number): Issue[] {
  const prefixOf = (index: number) => agent.mcp[index]?.prefix ?? agent.mcp[index]?.server;
  const first = agent.mcp.findIndex((_, index) => prefixOf(index) === prefixOf(at));
  if (first === at) return [];
  const message = `has the prefix of agent.mcp[${first}], ${prefixOf(at)}`;
  return [{ path: `agent.mcp[${at}].prefix`, message, fix: "give it another" }];
}
