/** Reads a step's batch to its end: an answer that is not the last one names the next in its Link header (RFC 8288). */
import type { BatchFormat } from "@rolldeck/contracts/api/batches";
import { type RequestOptions, requestFile } from "./request.ts";

export interface BatchFile {
  readonly bytes: Uint8Array;
  /** Rows in it. */
  readonly rows: number;
}

/** @throws ApiProblem, UnreachableError; an abort passes through */
export async function* fetchBatch(
  options: RequestOptions,
  path: string,
  { format = "jsonl", signal }: { readonly format?: BatchFormat; readonly signal?: AbortSignal },
): AsyncGenerator<BatchFile, void, void> {
  let after: string | null = "-1";
  while (after !== null) {
    const { bytes, headers } = await requestFile(options, { method: "GET", path, query: { format, after }, signal });
    yield { bytes, rows: Number(headers.get("x-rolldeck-rows")) };
    after = nextAfter(headers.get("link"));
  }
}

/** `after` of the address that is linked as the next. */
function nextAfter(link: string | null): string | null {
  const [, address] = /<([^>]+)>;\s*rel="next"/u.exec(link ?? "") ?? [];
  return address === undefined ? null : new URL(address, "http://any").searchParams.get("after");
}
