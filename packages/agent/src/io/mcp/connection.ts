/**
 * One connection to an MCP server, made when it is first needed and made anew after it broke. Invariants: whatever the server
 * does, a call ends within its time limit, in an outcome or in a BoundaryError("tool"); a server that keeps failing is tried
 * again ever more seldom (at most once in `maxPauseMs`), and only by calls that need it; nothing runs on after `close`.
 */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolResultSchema,
  ErrorCode,
  ListToolsResultSchema,
  McpError,
  type Tool as McpTool,
} from "@modelcontextprotocol/sdk/types.js";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { headWithin } from "../../core/cut-text.ts";
import { outcomeOf } from "./result-text.ts";

export interface ConnectionOptions {
  /** The server's name, for messages. */
  readonly name: string;
  /** @throws BoundaryError("tool") */
  readonly open: () => Transport;
  readonly startTimeoutMs: number;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  readonly onTrouble: (error: unknown) => void;
  /** Pause after the first failure, doubled with each further one. */
  readonly pauseMs?: number;
  readonly maxPauseMs?: number;
}
interface Limits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Pages of a list of tools that are read; a server with more has a fault. */
const maxPages = 20;
/** A call does not wait longer than this for a server to be tried again. */
const patienceMs = 2000;
/** A server that let a call time out must answer a ping within this, or it is taken for dead. */
const pingMs = 2000;
const goodbyeMs = 2000;

type Send<T> = (client: Client, options: { signal: AbortSignal; timeout: number }) => Promise<T>;

export class McpConnection {
  readonly #options: ConnectionOptions;
  #client: Promise<Client> | null = null;
  /** What `#client` came to. */
  #current: Client | null = null;
  #failures = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** @throws BoundaryError("tool") when the server does not tell */
  async listTools(limits: Limits): Promise<McpTool[]> {
    const tools: McpTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const result = await this.#request(
        (client, options) => client.request({ method: "tools/list", params }, ListToolsResultSchema, options),
        limits,
      );
      tools.push(...result.tools);
      cursor = result.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw this.#failure("mcp_endless", `lists more than ${maxPages} pages of tools`);
  }

  /** A tool's own error is an outcome. @throws BoundaryError("tool") when the server failed */
  async callTool(name: string, args: JsonObject, limits: Limits): Promise<ToolOutcome> {
    const request = { method: "tools/call" as const, params: { name, arguments: args } };
    return outcomeOf(
      await this.#request((client, options) => client.request(request, CallToolResultSchema, options), limits),
    );
  }

  /** Ends the server's process where it is one of ours. */
  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client;
    this.#client = null;
    // One that never came to be has nothing to close.
    await client?.then(end).catch(this.#options.onTrouble);
  }

  async #request<T>(send: Send<T>, limits: Limits, mayRepeat = true): Promise<T> {
    const { signal, timeoutMs } = limits;
    const deadline = this.#options.now() + timeoutMs;
    const client = await this.#connected(signal, deadline);
    try {
      const timeout = Math.max(1, deadline - this.#options.now());
      const result = await send(client, { signal, timeout });
      this.#failures = 0;
      return result;
    } catch (error) {
      if (signal.aborted) void this.#check(client);
      signal.throwIfAborted();
      this.#options.onTrouble(error);
      if (mayRepeat && isForgottenSession(error)) {
        await this.#drop(client);
        this.#retryAt = Number.NEGATIVE_INFINITY;
        return this.#request(send, { signal, timeoutMs: deadline - this.#options.now() }, false);
      }
      throw this.#judge(client, error, timeoutMs);
    }
  }

  /** What a failed request says of the server, and what the model is told. */
  #judge(client: Client, error: unknown, timeoutMs: number): BoundaryError {
    const isOpen = client.transport !== undefined;
    if (isOpen && error instanceof McpError) {
      if (error.code === ErrorCode.RequestTimeout) {
        void this.#check(client);
        return this.#failure("timeout", `did not answer within ${timeoutMs / 1000} s`, error);
      }
      const broken = error.code === ErrorCode.ConnectionClosed;
      const what = `${broken ? "broke off" : "answered with an error"}: ${headWithin(error.message, 500)}`;
      return this.#failure(broken ? "mcp_broken" : "mcp_error", what, error);
    }
    void this.#drop(client);
    return this.#failure("mcp_gone", "ended or went away while the call was under way; what it kept is gone", error);
  }

  /** A server that let a call run out of time, and answers nothing else either, is given up: the next call starts it anew. */
  async #check(client: Client): Promise<void> {
    try {
      await client.ping({ timeout: pingMs });
    } catch (error) {
      this.#options.onTrouble(error);
      await this.#drop(client);
    }
  }

  async #connected(signal: AbortSignal, deadline: number): Promise<Client> {
    if (this.#closed) throw this.#failure("mcp_closed", "is no longer used by this rollout");
    if (this.#client === null) {
      const pause = this.#retryAt - this.#options.now();
      if (pause > Math.min(patienceMs, deadline - this.#options.now()))
        throw this.#failure("mcp_down", `is down; it is tried again in ${Math.ceil(pause / 1000)} s`);
      this.#client = this.#open(Math.max(0, pause));
      this.#client.catch(() => undefined);
    }
    return orAborted(this.#client, signal);
  }

  async #open(pause: number): Promise<Client> {
    const { open, startTimeoutMs, onTrouble } = this.#options;
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    const client = new Client({ name: "rolldeck", version: "1" }, { capabilities: {} });
    client.onerror = onTrouble;
    try {
      await client.connect(open(), { timeout: startTimeoutMs });
      // Only now: what closes before was never open.
      client.onclose = () => this.#forget(client);
      this.#current = client;
      return client;
    } catch (error) {
      onTrouble(error);
      this.#client = null;
      this.#fail();
      await client.close().catch(onTrouble);
      throw error instanceof BoundaryError ? error : this.#failure("mcp_down", "could not be started", error);
    }
  }

  /** The server is gone: the next call starts it anew, after a pause. */
  #forget(client: Client): void {
    if (this.#current !== client) return;
    this.#current = null;
    this.#client = null;
    if (!this.#closed) this.#fail();
  }

  async #drop(client: Client): Promise<void> {
    this.#forget(client);
    await client.close().catch(this.#options.onTrouble);
  }

  #fail(): void {
    const { pauseMs = 250, maxPauseMs = 60_000, now } = this.#options;
    this.#retryAt = now() + Math.min(maxPauseMs, pauseMs * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
  }

  #failure(code: string, what: string, cause?: unknown): BoundaryError {
    return new BoundaryError("tool", code, `the tool server ${this.#options.name} ${what}`, { cause });
  }
}

/** A server over HTTP keeps our session until it is told, which it has a moment to hear. */
async function end(client: Client): Promise<void> {
  const { transport } = client;
  try {
    if (transport instanceof StreamableHTTPClientTransport)
      await orAborted(transport.terminateSession(), AbortSignal.timeout(goodbyeMs));
  } finally {
    await client.close();
  }
}

/** What a server over HTTP says of a session that it no longer has: the request was not looked at. */
const isForgottenSession = (error: unknown): boolean => error instanceof StreamableHTTPError && error.code === 404;
