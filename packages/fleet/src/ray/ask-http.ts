/**
 * One question over HTTP, and its answer's body, of which no more than a bound is held. Not `fetch`: it marks its requests as a
 * browser's, and Ray takes no orders from browsers. Redirects are not followed.
 */
import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";

export interface HttpQuestion {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
}

/** @throws what the connection says, or that it was aborted */
export function askHttp({ url, method = "GET", headers = {}, body, signal }: HttpQuestion): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = url.startsWith("https:") ? overHttps : overHttp;
    const asking = request(url, { method, headers, signal }, resolve);
    asking.once("error", reject);
    asking.end(body);
  });
}

/** @throws Error for one that is longer than `maxBytes`, which is then no longer read */
export async function readBody(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** The end of a body: all of it, or at least `maxBytes`. */
export async function readTail(
  answer: IncomingMessage,
  maxBytes: number,
): Promise<{ readonly text: string; readonly cut: boolean }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let cut = false;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    pieces.push(piece);
    for (let first = pieces[0]; first !== undefined && bytes - first.length >= maxBytes; first = pieces[0]) {
      bytes -= first.length;
      pieces.shift();
      cut = true;
    }
  }
  return { text: Buffer.concat(pieces).toString("utf8"), cut };
}
