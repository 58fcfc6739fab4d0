/**
 * The client's session at a server. A server may unload what belongs to a session that fell silent, so it hears from us every
 * 10 s while models are in use.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import type { TinkerHttp } from "./http.ts";
import { parseReply } from "./parse-reply.ts";

export const heartbeatMs = 10_000;
const sdkVersion = "0.25.0";
const SessionReply = z.object({ session_id: z.string() });

export class TinkerSession {
  readonly #http: TinkerHttp;
  readonly #heartbeatMs: number;
  readonly #onError: (error: unknown) => void;
  #id: Promise<string> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #models = 0;

  constructor(http: TinkerHttp, options: { heartbeatMs?: number; onError?: (error: unknown) => void } = {}) {
    this.#http = http;
    this.#heartbeatMs = options.heartbeatMs ?? heartbeatMs;
    this.#onError = options.onError ?? (() => {});
  }

  /** Opened at first use, and anew after the server forgot it. */
  id(outageMs: number, signal: AbortSignal | undefined): Promise<string> {
    if (this.#id === undefined) {
      const opening = this.#open(outageMs, signal);
      this.#id = opening;
      opening.catch(() => this.#forget(opening));
    }
    return this.#id;
  }

  /** The server says that it does not know this session (any more): the next use opens another. */
  async forgotten(sessionId: string): Promise<void> {
    const current = this.#id;
    if (current !== undefined && (await current.catch(() => sessionId)) === sessionId) this.#forget(current);
  }

  /** Numbers this client's models, from 0. */
  nextModel(): number {
    return this.#models++;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #open(outageMs: number, signal: AbortSignal | undefined): Promise<string> {
    const body = JSON.stringify({ tags: ["rolldeck"], user_metadata: null, sdk_version: sdkVersion });
    const json = await this.#http.json({ method: "POST", path: "/api/v1/create_session", body, signal, outageMs });
    this.#timer ??= setInterval(() => void this.#beat(), this.#heartbeatMs).unref();
    return parseReply(SessionReply, json, "create_session").session_id;
  }

  async #beat(): Promise<void> {
    const current = this.#id;
    if (current === undefined) return;
    try {
      const body = JSON.stringify({ session_id: await current });
      const path = "/api/v1/session_heartbeat";
      await this.#http.call({
        method: "POST",
        path,
        body,
        outageMs: 0,
        answerWithinMs: this.#heartbeatMs,
        probe: true,
      });
    } catch (error) {
      // The server restarted: its sessions are gone, and with them the models; whoever needs one opens another.
      if (isUnknown(error)) this.#forget(current);
      this.#onError(error);
    }
  }

  #forget(session: Promise<string>): void {
    if (this.#id === session) this.#id = undefined;
  }
}

/** The server does not have what the request names. */
export const isUnknown = (error: unknown): boolean =>
  error instanceof BoundaryError && (error.code === "unknown_model" || error.code === "not_found");
