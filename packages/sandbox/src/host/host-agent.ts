/**
 * A host of sandboxes: dials the gateway, serves it, and dials again when the connection ends. It keeps no promise of its own: what
 * nobody renews ends by the runtime's leases, whether this process lives or not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { type Handlers, serve } from "../remote/call.ts";
import { deferred } from "../remote/deferred.ts";
import { dial, type GatewayAddress } from "../remote/dial.ts";
import type { HostHello } from "../remote/frames.ts";
import type { LinkEvents } from "../remote/link.ts";
import { Stream } from "../remote/stream.ts";
import { type HostScene, hostMethods } from "./host-methods.ts";

export interface HostAgentOptions extends HostScene {
  /** Asked at each connect: a token or certificate may have been renewed. */
  readonly address: () => Promise<GatewayAddress>;
  readonly hello: () => Promise<HostHello>;
  readonly onState: (state: "joined" | "away", message: string) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const firstWaitMs = 200;
const longestWaitMs = 5_000;
const upkeepEveryMs = 5_000;
const closeLimitMs = 60_000;

/** Runs until the signal; the sandboxes stay. @throws BoundaryError("sandbox", "refused") when the gateway does not take this host */
export async function runHostAgent(options: HostAgentOptions, signal: AbortSignal): Promise<void> {
  const handlers = hostMethods(options);
  let isClosing = false;
  const upkeep = setInterval(() => {
    // One round after another: closing may take longer than the time between.
    if (isClosing) return;
    isClosing = true;
    void closeOverdue(options).finally(() => {
      isClosing = false;
    });
  }, upkeepEveryMs);
  try {
    let waitMs = firstWaitMs;
    for (let joinedBefore = false; !signal.aborted; ) {
      try {
        await stayJoined(options, handlers, signal);
        joinedBefore = true;
        waitMs = firstWaitMs;
      } catch (error) {
        if (signal.aborted) break;
        // A host that was taken stays: its token or certificate may be on its way to be renewed.
        const mayPass = joinedBefore || (error instanceof BoundaryError && error.code === "unavailable");
        if (!mayPass) throw error;
        options.onState("away", error instanceof Error ? error.message : String(error));
        waitMs = Math.min(waitMs * 2, longestWaitMs);
      }
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(upkeep);
  }
}

/** One connection, from dial to end. @throws BoundaryError("sandbox") when there is none to be had */
async function stayJoined(options: HostAgentOptions, handlers: Handlers, signal: AbortSignal): Promise<void> {
  const ended = deferred<Error>();
  const onStream: LinkEvents["onStream"] = ({ s, method, params }, link) => {
    const stream = new Stream(link, s);
    void serve(stream, method, params, handlers, (failed, error) => tellUnexpected(options, failed, error));
    return stream;
  };
  const link = await dial(
    await options.address(),
    "host",
    await options.hello(),
    { onStream, onEnd: ended.resolve },
    signal,
  );
  options.onState("joined", "joined the sandbox server");
  const leave = (): void => link.close("the host leaves");
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  const error = await ended.promise;
  signal.removeEventListener("abort", leave);
  if (!signal.aborted) options.onState("away", error.message);
}

/** What callers are told anyway is not told here. */
function tellUnexpected({ onTrouble }: HostAgentOptions, method: string, error: unknown): void {
  const expected = error instanceof BoundaryError || error instanceof SandboxFileError;
  if (!expected) onTrouble(`${method} failed`, error);
}

async function closeOverdue({ held, runtime, nowMs, onTrouble }: HostAgentOptions): Promise<void> {
  for (const id of held.overdue(nowMs())) {
    try {
      await runtime.close(held.inner(id), AbortSignal.timeout(closeLimitMs));
      await held.forget(id);
    } catch (error) {
      onTrouble(`sandbox ${id} is past its life and can't be closed`, error);
    }
  }
}
