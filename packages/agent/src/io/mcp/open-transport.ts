/** The way to an MCP server: its own process, or HTTP. Nothing of the worker's environment or secrets goes along unasked. */
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type McpServer, type McpValue, runsInSandbox } from "@rolldeck/contracts/mcp-servers";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { boundedFetch } from "./bounded-fetch.ts";
import { SandboxTransport } from "./sandbox-transport.ts";

/** Bytes of one message: what is longer ends the connection, not the worker. */
export const maxMessageBytes = 16 * 1024 * 1024;

export interface TransportScene {
  /** Where `{env}` values come from. */
  readonly variable: (name: string) => string | undefined;
  /** For a server that runs in one. */
  readonly sandbox?: Sandbox | null;
}

/**
 * Not yet started.
 * @param onStderr what its process writes besides answers
 * @throws BoundaryError("tool", "mcp_secret") naming a variable that is not set
 */
export function openTransport(
  server: McpServer,
  { variable, sandbox = null }: TransportScene,
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
  if (runsInSandbox(server)) {
    if (sandbox === null) throw new BoundaryError("tool", "mcp_no_sandbox", "there is no sandbox to run it in");
    const boxed = { command: [command, ...args], environment: values(env), cwd, maxMessageBytes };
    return new SandboxTransport(sandbox, boxed, onStderr);
  }
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
