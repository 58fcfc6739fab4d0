/** An answer as a value: it can be stored under an Idempotency-Key, repeated, and compared in a test. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Problem } from "@rolldeck/contracts/api/problems";

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** In place of `body` where the answer is a file. */
  readonly bytes?: Uint8Array;
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
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  /** Letters, digits, dots, dashes and underscores. */
  readonly fileName: string;
}): Reply => ({
  status: 200,
  headers: {
    "content-type": inertType(file.mediaType),
    "content-disposition": `attachment; filename="${file.fileName.replaceAll(/[^A-Za-z0-9._-]/gu, "_")}"`,
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "no-store",
  },
  body: "",
  bytes: file.bytes,
});

const inertType = (mediaType: string): string => {
  if (mediaType === "application/json") return mediaType;
  return mediaType.startsWith("text/") ? "text/plain; charset=utf-8" : "application/octet-stream";
};

export function sendReply(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  if (response.headersSent || response.writableEnded) return;
  const body = reply.bytes ?? Buffer.from(reply.body);
  response.writeHead(reply.status, {
    ...reply.headers,
    "content-length": String(body.length),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
  });
  response.end(request.method === "HEAD" ? undefined : body);
}
