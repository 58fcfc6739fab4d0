/** Calling a method over a link, and serving methods: parameters and results are checked on the side that gets them. */
import { z } from "zod";
import { ProtocolError } from "./frames.ts";
import type { Link } from "./link.ts";
import { isMethod, type Method, methodTypes, type Params, type Result } from "./methods.ts";
import { Stream } from "./stream.ts";
import { refused, unavailable } from "./wire-error.ts";

export interface Call<M extends Method> {
  readonly stream: Stream;
  /** Rejects with the server's error, `unavailable` when the connection ended, or the signal's reason. */
  readonly result: Promise<Result<M>>;
}

/** Begins a call; the signal cancels it. @throws BoundaryError("sandbox", "unavailable") */
export function begin<M extends Method>(link: Link, method: M, params: Params<M>, signal: AbortSignal): Call<M> {
  signal.throwIfAborted();
  const stream = open(link, method, params);
  const onAbort = (): void => stream.cancel(reasonOf(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  const onOver = (): void => signal.removeEventListener("abort", onAbort);
  stream.over.addEventListener("abort", onOver, { once: true });
  // Sending it may have ended the connection.
  if (stream.over.aborted) onOver();
  const result = stream.outcome.then((value) => parseResult(method, value));
  result.catch(() => undefined);
  return { stream, result };
}

/** @throws refused for what is too much for one frame */
function open(link: Link, method: string, params: unknown): Stream {
  try {
    return Stream.open(link, method, params);
  } catch (error) {
    if (error instanceof ProtocolError) throw refused(`${method}: ${error.message}`, error);
    throw error;
  }
}

/** A call without bytes. */
export async function call<M extends Method>(
  link: Link,
  method: M,
  params: Params<M>,
  signal: AbortSignal,
): Promise<Result<M>> {
  return await begin(link, method, params, signal).result;
}

export type Handlers = { readonly [M in Method]?: (params: Params<M>, stream: Stream) => Promise<Result<M>> };

/** Serves one stream that was opened by the other side, and settles it. */
export async function serve(
  stream: Stream,
  method: string,
  params: unknown,
  handlers: Handlers,
  onTrouble: (method: string, error: unknown) => void,
): Promise<void> {
  try {
    if (!isMethod(method) || handlers[method] === undefined) throw refused(`no method ${method}`);
    stream.finish(await run(method, params, stream, handlers));
  } catch (error) {
    onTrouble(method, error);
    stream.fail(error);
  }
}

async function run<M extends Method>(method: M, params: unknown, stream: Stream, handlers: Handlers): Promise<unknown> {
  return await handlers[method]?.(parseParams(method, params), stream);
}

/** @throws BoundaryError("sandbox", "refused") that names what is wrong */
export function parseParams<M extends Method>(method: M, params: unknown): Params<M> {
  const parsed = methodTypes[method].params.safeParse(params);
  if (!parsed.success) throw refused(`${method}: ${z.prettifyError(parsed.error)}`, parsed.error);
  return parsed.data;
}

function parseResult<M extends Method>(method: M, value: unknown): Result<M> {
  const parsed = methodTypes[method].result.safeParse(value);
  if (parsed.success) return parsed.data;
  const cause = new ProtocolError(`an answer to ${method} that is none: ${z.prettifyError(parsed.error)}`);
  throw unavailable(cause.message, cause);
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error("aborted", { cause: signal.reason });

/**
 * All of a channel, of which at most so much may come.
 * @param take hears of each piece before it is kept
 * @throws refused when there is more; what `take` throws
 */
export async function collect(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  take: (bytes: number) => void = () => undefined,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw refused(`more than the ${maxBytes} bytes that were told`);
    take(chunk.length);
    parts.push(chunk);
  }
  return Buffer.concat(parts, bytes);
}
