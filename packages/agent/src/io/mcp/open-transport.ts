/** The way to an MCP server: its own process, or HTTP. Nothing of the worker's environment or secrets goes along unasked. */
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { McpServer, McpValue } from "@rolldeck/contracts/mcp-servers";
import { boundedFetch } from "./bounded-fetch.ts";

/** Bytes of one message: what is longer ends the connection, not the worker. */
export const maxMessageBytes = 16 * 1024 * 1024;

/**
 * Not yet started.
 * @param variable where `{env}` values come from
 * @param onStderr what its process writes besides answers
 * @throws BoundaryError("tool", "mcp_secret") naming a variable that is not set
 */
export function openTransport(
  server: McpServer,
  variable: (name: string) => string | undefined,
  onStderr: (chunk: Uint8Array) => void,
): Transport {
  const values = (record: Readonly<Record<string, McpValue>>): Record<string, string> =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, resolve(value, variable)]));
  if ("url" in server) {
    const transport: Transport = new StreamableHTTPClientTransport(new URL(server.url), {
      requestInit: { headers: values(server.headers) },
      fetch: boundedFetch(maxMessageBytes, (id, message) =>
        transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: ErrorCode.ConnectionClosed, message } }),
      ),
    });
    return transport;
  }
  const { command, args, env, cwd } = server;
  const transport = new StdioClientTransport({
    command,
    args,
    env: values(env),
    cwd: cwd ?? undefined,
    stderr: "pipe",
    maxBufferSize: maxMessageBytes,
  });
  transport.stderr?.on("data", onStderr);
  return transport;
}

function resolve(value: McpValue, variable: (name: string) => string | undefined): string {
  if (typeof value === "string") return value;
  const found = variable(value.env);
  if (found === undefined) throw new BoundaryError("tool", "mcp_secret", `the variable ${value.env} is not set`);
  return value.prefix + found;
}
