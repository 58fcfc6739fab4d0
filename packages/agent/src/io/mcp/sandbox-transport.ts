/**
 * An MCP server that runs in a rollout's sandbox, over its standard streams. Invariants: a message longer than the limit ends the
 * connection, not the worker; when the sandbox goes away the connection closes.
 */
import { ReadBuffer, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Sandbox, SandboxProcess } from "@rolldeck/contracts/ports/sandbox";

export interface SandboxServerCommand {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  /** Bytes of one message. */
  readonly maxMessageBytes: number;
}

export class SandboxTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #sandbox: Sandbox;
  readonly #server: SandboxServerCommand;
  readonly #onStderr: (chunk: Uint8Array) => void;
  readonly #closing = new AbortController();
  #process: SandboxProcess | null = null;

  constructor(sandbox: Sandbox, server: SandboxServerCommand, onStderr: (chunk: Uint8Array) => void) {
    this.#sandbox = sandbox;
    this.#server = server;
    this.#onStderr = onStderr;
  }

  async start(): Promise<void> {
    const { command, environment, cwd } = this.#server;
    const request = { command, environment, ...(cwd === null ? {} : { cwd }) };
    const started = await this.#sandbox.spawn(request, this.#closing.signal);
    this.#process = started;
    const ended = Promise.all([this.#read(started), this.#drain(started), started.wait()]);
    void ended.catch((error: unknown) => this.onerror?.(asError(error))).finally(() => this.close());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#process === null || this.#closing.signal.aborted) throw new Error("the server is not running");
    await this.#process.write(Buffer.from(serializeMessage(message)));
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error("the connection is closed"));
    await this.#process?.endStdin().catch((error: unknown) => this.onerror?.(asError(error)));
    await this.#process?.close();
    this.onclose?.();
  }

  async #read({ stdout }: SandboxProcess): Promise<void> {
    // Its own limit is on all that came at once, and lower than ours; `held` is what bounds it.
    const buffer = new ReadBuffer({ maxBufferSize: Number.POSITIVE_INFINITY });
    let held = 0;
    for await (const chunk of stdout) {
      const lineEnd = chunk.lastIndexOf(0x0a);
      held = lineEnd === -1 ? held + chunk.length : chunk.length - lineEnd - 1;
      if (held > this.#server.maxMessageBytes) throw new Error("the server sent a message that is too long");
      buffer.append(Buffer.from(chunk));
      this.#deliver(buffer);
    }
  }

  /** A line that is no message is said and left out. */
  #deliver(buffer: ReadBuffer): void {
    for (;;) {
      try {
        const message = buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(asError(error));
      }
    }
  }

  async #drain({ stderr }: SandboxProcess): Promise<void> {
    for await (const chunk of stderr) this.#onStderr(chunk);
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
