/** Calls that go through to the host of their sandbox, and what is noted of them. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { parseParams } from "@rolldeck/sandbox/remote/call";
import type { Link, StreamSink } from "@rolldeck/sandbox/remote/link";
import { methodTypes } from "@rolldeck/sandbox/remote/methods";
import { toWire } from "@rolldeck/sandbox/remote/wire-error";
import type { Gateway } from "./gateway.ts";
import { hostImageName } from "./host-images.ts";
import { relay } from "./relay.ts";

const relayed = [
  "attach",
  "exec",
  "spawn",
  "killAll",
  "readFile",
  "writeFile",
  "putArchive",
  "getArchive",
  "snapshot",
  "reset",
] as const;
type Relayed = (typeof relayed)[number];

export const isRelayed = (method: string): method is Relayed => relayed.some((known) => known === method);

/** The client's end of a call that has just been opened. */
export function relayCall(
  gateway: Gateway,
  caller: { readonly link: Link; readonly client: string; readonly stream: number },
  method: Relayed,
  params: unknown,
): StreamSink {
  const { link: client, stream: id } = caller;
  const { measures, directory } = gateway;
  try {
    const parsed = parseParams(method, params);
    const { host, link, held } = gateway.locate(parsed.sandbox, caller.client);
    measures.called(method);
    return relay({
      ...{ client, clientStream: id, host: link, hostName: host.name, method, params: parsed },
      onResult: (value) => (method === "snapshot" ? snapshotName(host.hostId, value) : value),
      onEnd: (failure) => {
        if (failure !== null) measures.failed(method, failure);
        if (failure === "gone") directory.drop(held.id, "it ended on its host", performance.now());
      },
      onBytes: (direction, bytes) => measures.moved(direction, bytes),
    });
  } catch (error) {
    measures.failed(method, error instanceof BoundaryError ? error.code : "failed");
    client.send({ k: "error", s: id, error: toWire(error) });
    client.forget(id);
    return { onFrame: () => undefined, onLost: () => undefined };
  }
}

/** Other hosts have no such image: the name says where it is. */
function snapshotName(hostId: string, value: unknown): unknown {
  const answer = methodTypes.snapshot.result.safeParse(value);
  return answer.success ? { image: hostImageName(hostId, answer.data.image) } : value;
}
