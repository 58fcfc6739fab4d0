/** An answer as a value: it can be stored under an Idempotency-Key, repeated, and compared in a test. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import type { Problem } from "@rolldeck/contracts/api/problems";

/** Bytes that are passed on as they come. Where they fail, the connection is cut before `length` is reached, or before the last chunk. */
export interface StreamedBytes {
  /** Null where nobody knows it yet. */
  readonly length: number | null;
  readonly body: ByteStream;
}
export interface ByteStream extends AsyncIterable<Uint8Array> {
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** In place of `body` where the answer is a file. */
  readonly bytes?: Uint8Array | StreamedBytes;
}

export const jsonReply = (status: number, value: unknown, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  body: JSON.stringify(value),
});

export const problemReply = (problem: Problem, headers: Record<string, string> = {}): Reply => ({
  status: problem.status,
  headers: { "content-type": "application/problem+json; charset=utf-8", "cache-control": "no-store", ...headers },
  body: JSON.stringify(problem),
});

export const htmlReply = (status: number, html: string, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    // These pages are ours alone and need nothing from anywhere.
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'",
    ...headers,
  },
  body: html,
});

/** A file to keep, never to show: what it holds came from models and tools, and no browser may run it. */
export const fileReply = (file: {
  readonly bytes: Uint8Array | StreamedBytes;
  readonly mediaType: string;
  /** Letters, digits, dots, dashes and underscores. */
  readonly fileName: string;
  readonly headers?: Readonly<Record<string, string>>;
}): Reply => ({
  status: 200,
  headers: {
    "content-type": inertType(file.mediaType),
    "content-disposition": `attachment; filename="${file.fileName.replaceAll(/[^A-Za-z0-9._-]/gu, "_")}"`,
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "no-store",
    ...file.headers,
  },
  body: "",
  bytes: file.bytes,
});

const inertTypes = ["application/json", "application/jsonl", "application/vnd.apache.parquet", "application/x-tar"];
const inertType = (mediaType: string): string => {
  if (inertTypes.includes(mediaType)) return mediaType;
  return mediaType.startsWith("text/") ? "text/plain; charset=utf-8" : "application/octet-stream";
};

export function sendReply(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  const body = reply.bytes ?? Buffer.from(reply.body);
  const streamed = "body" in body ? body.body : null;
  if (response.headersSent || response.writableEnded || response.destroyed) {
    streamed?.destroy();
    return;
  }
  response.writeHead(reply.status, {
    ...reply.headers,
    ...(body.length !== null && { "content-length": String(body.length) }),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
  });
  if ("body" in body && request.method !== "HEAD") {
    // Either side may go away in the middle: pipeline ends the other, and there is nobody left to tell.
    pipeline(body.body, response, () => undefined);
    return;
  }
  streamed?.destroy();
  response.end(request.method === "HEAD" || "body" in body ? undefined : body);
}
