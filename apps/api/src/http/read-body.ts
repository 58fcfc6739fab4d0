/** Reads and judges a request's body before anything parses it: size, then encoding, then depth. */
import type { IncomingMessage } from "node:http";
import { jsonDepth, maxJsonDepth } from "@rolldeck/contracts/json-depth";
import { ProblemError } from "../problems.ts";

export const maxBodyBytes = 2 * 1024 * 1024;
/**
 * @throws ProblemError("too-large") as soon as it is known. The rest is still taken off the wire and dropped: closing at once
 * would reset the connection before the client could read why.
 */
export function readBody(request: IncomingMessage, limit = maxBodyBytes): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(new ProblemError("bad-input", "The request ended before its body did."));
    // Who was looked up first may have gone meanwhile: "close" does not come again.
    if (request.destroyed) return leave();
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = () => {
      chunks.length = 0;
      reject(new ProblemError("too-large", `The body may have at most ${limit} bytes.`));
    };
    if (Number(request.headers["content-length"] ?? 0) > limit) refuse();
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) refuse();
      else chunks.push(chunk);
    });
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", reject);
    request.on("close", leave);
  });
}

/** @throws ProblemError("bad-json") for bytes that are not UTF-8: a guess at them would change the text silently */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ProblemError("bad-json", "The body is not UTF-8.", { cause });
  }
}

/** @throws ProblemError("bad-json") */
export function parseJson(text: string): unknown {
  if (jsonDepth(text) > maxJsonDepth)
    throw new ProblemError("bad-json", `The JSON is nested more than ${maxJsonDepth} levels deep.`);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProblemError("bad-json", `The body is not valid JSON: ${cause instanceof Error ? cause.message : ""}`, {
      cause,
    });
  }
}
