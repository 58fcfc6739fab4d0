/**
 * The MCP servers of a worker process. Invariants: only servers of the operator's list are ever started; one that is shared has at
 * most one connection; one that is `perRollout` has one for each rollout that calls it, gone when the rollout is closed; what a
 * server offers is asked once and stays so for the life of the process, so a rollout that is continued has the tools it had.
 */

import type { Tool as McpTool } from "@modelcontextprotocol/sdk/types.js";
import type { McpMount } from "@rolldeck/contracts/agent-config";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type McpServer, type McpServerList, mcpRefusal, runsInSandbox } from "@rolldeck/contracts/mcp-servers";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Tool, ToolContext } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import type { z } from "zod";
import { McpConnection } from "./connection.ts";
import { mountTools, refuseDoubles } from "./mount-tools.ts";
import { openTransport } from "./open-transport.ts";

export interface McpServersOptions {
  readonly servers: McpServerList;
  /** Where `{env}` values come from. */
  readonly variable: (name: string) => string | undefined;
  readonly now: () => number;
  /** What a server's process writes besides answers, and what went wrong with it: for the operator, never for the model. */
  readonly onTrouble: (server: string, trouble: unknown) => void;
  readonly pauseMs?: number;
}
/** Tools of one rollout. */
export interface MountedTools {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

export class McpServers {
  readonly #options: McpServersOptions;
  readonly #shared = new Map<string, McpConnection>();
  readonly #closing = new AbortController();
  readonly #listed = new Map<string, Promise<McpTool[]>>();

  constructor(options: McpServersOptions) {
    this.#options = options;
  }

  /**
   * The tools of these servers for one rollout.
   * @param sandbox the rollout's, for servers that run in it
   * @throws BoundaryError("infrastructure") when a server is not on the list, does not tell its tools or lacks one that is asked for
   */
  async mount(
    mounts: readonly z.infer<typeof McpMount>[],
    signal: AbortSignal,
    sandbox: Sandbox | null = null,
  ): Promise<MountedTools> {
    const own: McpConnection[] = [];
    const tools: Tool[] = [];
    try {
      for (const mount of mounts) tools.push(...(await this.#mountOne(mount, { own, sandbox }, signal)));
      refuseDoubles(tools);
    } catch (error) {
      await Promise.all(own.map((connection) => connection.close()));
      throw error;
    }
    return {
      tools,
      close: async () => {
        await Promise.all(own.map((connection) => connection.close()));
      },
    };
  }

  /** It runs in the rollout's sandbox. */
  isBoxed(name: string): boolean {
    const server = Object.hasOwn(this.#options.servers, name) ? this.#options.servers[name] : undefined;
    return server !== undefined && runsInSandbox(server);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the worker is stopping"));
    await Promise.all([...this.#shared.values()].map((connection) => connection.close()));
  }

  async #mountOne(
    mount: z.infer<typeof McpMount>,
    { own, sandbox }: { readonly own: McpConnection[]; readonly sandbox: Sandbox | null },
    signal: AbortSignal,
  ): Promise<Tool[]> {
    const name = mount.server;
    const server = Object.hasOwn(this.#options.servers, name) ? this.#options.servers[name] : undefined;
    if (server === undefined) throw unusable(`this worker has no MCP server ${JSON.stringify(name)}`);
    const refusal = mcpRefusal(server);
    if (refusal !== null) throw unusable(`MCP server ${name} can't be used: ${refusal}`);
    const boxed = runsInSandbox(server);
    if (boxed && sandbox === null) throw unusable(`MCP server ${name} runs in a sandbox, and this task has none`);
    const ofRollout = server.perRollout || boxed;
    const connection = ofRollout ? this.#connect(name, server, sandbox) : this.#sharedConnection(name, server);
    if (ofRollout) own.push(connection);
    const asked = this.#list(name, server, boxed ? connection : null);
    const listed = await orAborted(asked, signal);
    return mountTools(listed, {
      server: name,
      prefix: mount.prefix ?? name,
      only: mount.tools,
      idempotent: server.idempotent,
      stateful: ofRollout,
      call: (tool, args, context) => callWithin(connection, server, tool, args, context),
    });
  }

  /**
   * Asked of a connection of its own where a rollout's connection is the rollout's alone.
   * @param boxed the rollout's, where only a sandbox has the server
   */
  #list(name: string, server: McpServer, boxed: McpConnection | null): Promise<McpTool[]> {
    const known = this.#listed.get(name);
    // What another rollout's sandbox did not tell, this one's may: that one may be gone.
    if (known) return boxed === null ? known : known.catch(() => this.#list(name, server, boxed));
    const asked = this.#ask(name, server, boxed);
    this.#listed.set(name, asked);
    asked.catch(() => this.#listed.delete(name));
    return asked;
  }

  async #ask(name: string, server: McpServer, boxed: McpConnection | null): Promise<McpTool[]> {
    const { signal } = this.#closing;
    const connection =
      boxed ?? (server.perRollout ? this.#connect(name, server, null) : this.#sharedConnection(name, server));
    try {
      return await connection.listTools({ signal, timeoutMs: server.startTimeoutMs });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new BoundaryError("infrastructure", "mcp_unavailable", why, { cause, retryable: true });
    } finally {
      if (boxed === null && server.perRollout) await connection.close();
    }
  }

  #sharedConnection(name: string, server: McpServer): McpConnection {
    const known = this.#shared.get(name) ?? this.#connect(name, server, null);
    this.#shared.set(name, known);
    return known;
  }

  #connect(name: string, server: McpServer, sandbox: Sandbox | null): McpConnection {
    const { variable, now, onTrouble, pauseMs } = this.#options;
    const onStderr = (chunk: Uint8Array) => onTrouble(name, stderrText(chunk));
    return new McpConnection({
      name,
      open: () => openTransport(server, { variable, sandbox }, onStderr),
      startTimeoutMs: server.startTimeoutMs,
      now,
      onTrouble: (error) => onTrouble(name, error),
      pauseMs,
    });
  }
}

const unusable = (message: string): BoundaryError => new BoundaryError("infrastructure", "mcp_unknown", message);

const stderrText = (chunk: Uint8Array): string => new TextDecoder().decode(chunk.subarray(0, 2048)).trimEnd();

function callWithin(
  connection: McpConnection,
  server: McpServer,
  tool: string,
  args: JsonObject,
  context: ToolContext,
) {
  // The call's own limit and ours: whichever ends first says so, and ours is told to the server.
  const timeoutMs = Math.max(1, Math.min(server.timeoutMs, context.deadlineMs - Date.now()));
  return connection.callTool(tool, args, { signal: context.signal, timeoutMs });
}
