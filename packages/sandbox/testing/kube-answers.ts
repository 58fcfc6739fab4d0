/** Small parts of the API's answers: their shape, label selectors, and a container's log. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough, Readable } from "node:stream";
import type Docker from "dockerode";

type Terms = readonly (readonly string[])[];

/** Of a selector by equality. */
export const termsOf = (selector: string | null): Terms =>
  (selector ?? "")
    .split(",")
    .filter(Boolean)
    .map((part) => part.split("="));
export const fits = (labels: Readonly<Record<string, string>>, wanted: Terms): boolean =>
  wanted.every(([key = "", value]) => labels[key] === value);

/** What a container prints, from its last lines on; until it ends where that is asked for. */
export async function sendLog(
  container: Docker.Container | null,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  if (container === null) return void response.writeHead(400).end();
  const tail = Number(query.get("tailLines") ?? "1000");
  const wanted = { stdout: true, stderr: true, timestamps: query.get("timestamps") === "true", tail };
  const follow = query.get("follow") === "true";
  const framed = follow
    ? await container.logs({ ...wanted, follow: true })
    : Readable.from([await container.logs({ ...wanted, follow: false })]);
  const lines = new PassThrough();
  container.modem.demuxStream(framed, lines, lines);
  framed.once("end", () => lines.end());
  response.once("close", () => "destroy" in framed && typeof framed.destroy === "function" && framed.destroy());
  response.writeHead(200, { "content-type": "text/plain" });
  response.flushHeaders();
  lines.pipe(response);
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

export function reply(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export const failure = (response: ServerResponse, code: number, reason: string, message: string): void =>
  reply(response, code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message });
