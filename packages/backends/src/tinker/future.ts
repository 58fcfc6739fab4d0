/** Requests that are answered by a future: submit, ask until it is ready, submit again when the server lost it. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { FutureReply } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import type { RequestBody } from "../http/prompt-body.ts";
import { pause } from "../resilient/deadline.ts";
import type { Wait } from "../resilient/resilient-calls.ts";
import type { Call, TinkerHttp } from "./http.ts";
import { parseReply } from "./parse-reply.ts";

/** A server may hold a poll open; past this it is asked anew. */
const pollWithinMs = 60_000;
const maxSubmits = 4;
const maxPollPauseMs = 200;

const MetadataOnly = z.object({ status: z.literal("complete_metadata") });

export interface FutureCall {
  /** `/api/v1/optim_step` */
  readonly path: string;
  readonly body: RequestBody;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly outageMs: number;
  /** The server would apply it twice if it came twice: sent once, whatever becomes of the answer. Polls are repeated all the same. */
  readonly once?: boolean;
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

/** @returns the result's JSON. @throws BoundaryError("model-server"), FencedError, or the signal's reason */
export async function awaitFuture(http: TinkerHttp, { once = false, ...call }: FutureCall): Promise<unknown> {
  const outageMs = once ? 0 : call.outageMs;
  for (let submits = 0; submits < (once ? 1 : maxSubmits); submits++) {
    const submitted = parseReply(FutureReply, await http.json({ method: "POST", ...call, outageMs }), call.path);
    const result = await poll(http, call, submitted.request_id);
    if (result !== lost) return result;
  }
  throw new BoundaryError("model-server", "future_lost", `${call.path}: the server has lost the result`, {
    retryable: true,
  });
}

const lost = Symbol("lost");

async function poll(http: TinkerHttp, call: FutureCall, requestId: string): Promise<unknown> {
  let allowMetadataOnly: boolean | undefined;
  for (let polls = 0; ; polls++) {
    const askedAt = performance.now();
    const answer = await http.call(retrieve(call, requestId, allowMetadataOnly));
    if (answer.is === "lost") return lost;
    if (answer.is === "done") {
      if (!MetadataOnly.safeParse(answer.json).success) return answer.json;
      allowMetadataOnly = false;
      continue;
    }
    // A server that holds the poll sets the pace itself; one that answers at once must not be hammered.
    const pauseMs = Math.min(maxPollPauseMs, 5 * 2 ** Math.min(polls, 6));
    if (performance.now() - askedAt < pauseMs) await pause(pauseMs, call.signal);
  }
}

function retrieve(call: FutureCall, requestId: string, allowMetadataOnly: boolean | undefined): Call {
  return {
    method: "POST",
    path: "/api/v1/retrieve_future",
    body: JSON.stringify({ request_id: requestId, allow_metadata_only: allowMetadataOnly }),
    headers: call.headers,
    signal: call.signal,
    outageMs: call.outageMs,
    onWait: call.onWait,
    pollWithinMs,
  };
}
