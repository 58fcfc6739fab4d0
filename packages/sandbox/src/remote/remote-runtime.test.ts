/** A client and what it says to a gateway that the test plays: which calls are made again, taken back or believed. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { noResources, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { subprotocol } from "./frames.ts";
import { Link } from "./link.ts";
import { RemoteRuntime } from "./remote-runtime.ts";
import { Stream } from "./stream.ts";

interface Heard {
  readonly method: string;
  readonly params: unknown;
  readonly stream: Stream;
}

const { signal } = new AbortController();
const id = `sbx_${"a".repeat(20)}`;
const spec: SandboxSpec = {
  ...{ id, labels: {}, image: null, workdir: null, environment: {}, resources: noResources },
  ...{ network: { mode: "none" }, services: [], mounts: [], leaseMs: 60_000, maxLifeMs: 600_000 },
};

let http: Server;
let client: RemoteRuntime;
let heard: Heard[];
let connections: Link[];
/** What the gateway does with a call. */
let onCall: (call: Heard) => void;

beforeEach(async () => {
  [heard, connections, onCall] = [[], [], () => undefined];
  http = createServer();
  const sockets = new WebSocketServer({ server: http, handleProtocols: () => subprotocol });
  sockets.on("connection", (socket) => {
    const link: Link = new Link(socket, {
      onStream: ({ s, method, params }) => {
        const call = { method, params, stream: new Stream(link, s) };
        heard.push(call);
        onCall(call);
        return call.stream;
      },
      onGreeting: () => link.send({ k: "welcome", version: 1, gateway: "played" }),
      onEnd: () => undefined,
    });
    connections.push(link);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  client = new RemoteRuntime({
    address: async () => ({ url, token: "a token", ca: null }),
    deployment: "test",
    onTrouble: () => undefined,
  });
});
afterEach(async () => {
  await client.disconnect();
  for (const link of connections) link.close("the test is over");
  http.close();
  http.closeAllConnections();
});

async function heardOf(method: string): Promise<Heard> {
  for (;;) {
    const call = heard.find((each) => each.method === method);
    if (call !== undefined) return call;
    await sleep(5);
  }
}
const opened = { workdir: "/", can: [] };

describe("an opening", () => {
  it("that is given up is taken back, since its answer may have been on its way", async () => {
    const stop = new AbortController();
    const opening = client.open(spec, stop.signal);
    const { stream } = await heardOf("open");
    stop.abort(new Error("given up"));
    await expect(opening).rejects.toThrow("given up");
    stream.finish(opened);
    expect((await heardOf("close")).params).toEqual({ sandbox: id });
  });

  it("that is cut off is taken back on the next connection", async () => {
    const opening = client.open(spec, signal);
    await heardOf("open");
    connections[0]?.close("cut");
    await expect(opening).rejects.toMatchObject({ code: "unavailable" });
    expect((await heardOf("close")).params).toEqual({ sandbox: id });
    expect(heard.filter(({ method }) => method === "open").length).toBe(1);
  });

  it("whose answer can't be read is taken back", async () => {
    onCall = ({ method, stream }) => method === "open" && stream.finish({ something: "else" });
    await expect(client.open(spec, signal)).rejects.toMatchObject({ code: "unavailable" });
    expect((await heardOf("close")).params).toEqual({ sandbox: id });
  });

  it("that the gateway refuses has left nothing to take back", async () => {
    onCall = ({ method, stream }) => {
      if (method === "open") stream.fail(new Error("no"));
      else stream.finish({ sandboxes: [], complete: true });
    };
    await expect(client.open(spec, signal)).rejects.toMatchObject({ code: "failed" });
    await client.list(signal);
    expect(heard.map(({ method }) => method)).toEqual(["open", "list"]);
  });
});

describe("a list", () => {
  it("that is not complete is none", async () => {
    const one = { id, labels: {}, state: "running", createdAtMs: 1 };
    let complete = false;
    onCall = ({ stream }) => stream.finish({ sandboxes: [one], complete });
    await expect(client.list(signal)).rejects.toMatchObject({ code: "unavailable", retryable: true });
    complete = true;
    expect(await client.list(signal)).toEqual([one]);
  });
});

it("a call that waits for a gateway ends with its client", async () => {
  http.close();
  http.closeAllConnections();
  const listing = expect(client.list(signal)).rejects.toMatchObject({ name: "BoundaryError", code: "unavailable" });
  await sleep(150);
  await client.disconnect();
  await listing;
  await expect(client.list(signal)).rejects.toMatchObject({ code: "unavailable" });
});
