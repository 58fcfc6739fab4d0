/**
 * `fetch` for JSON-RPC over HTTP. Invariants: an answer to a POST, each of which serves one request, holds at most `maxBytes`: a
 * server that sends without end breaks its own answer, not the worker; one that breaks off is told to `onBroken` with the
 * request's id, because whoever waits for it would otherwise wait out its time limit. Streams that stay open for
 * notifications (GET) have no such limit.
 */
import { z } from "zod";

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
export type RequestId = string | number;

export function boundedFetch(maxBytes: number, onBroken: (id: RequestId, reason: string) => void): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (init?.method !== "POST" || !response.ok || response.body === null) return response;
    const id = idOf(init.body);
    const body = bounded(response.body, maxBytes, (reason) => {
      // A request that was given up is no longer waited for.
      if (id !== null && init.signal?.aborted !== true) onBroken(id, reason);
    });
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

function bounded(
  source: ReadableStream<Uint8Array>,
  maxBytes: number,
  onBroken: (reason: string) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let bytes = 0;
  const next = async () => {
    const { done, value } = await reader.read();
    bytes += value?.length ?? 0;
    if (bytes <= maxBytes) return { done, value };
    await reader.cancel();
    throw new Error(`the answer is longer than ${maxBytes} bytes`);
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await next();
        if (done || value === undefined) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        onBroken(bytes > maxBytes && error instanceof Error ? error.message : "the answer broke off");
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const Request = z.object({ id: z.union([z.string(), z.number()]) });

/** The id of the JSON-RPC request in a body; null for notifications and answers of ours that have none. */
function idOf(body: RequestInit["body"]): RequestId | null {
  if (typeof body !== "string") return null;
  try {
    return Request.safeParse(JSON.parse(body)).data?.id ?? null;
  } catch {
    return null;
  }
}
