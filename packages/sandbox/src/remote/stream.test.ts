/** Two links over a real socket pair: what streams promise. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { type LinkPair, linkPair } from "../../testing/link-pair.ts";
import { collect } from "./call.ts";
import { encodeFrame } from "./frames.ts";
import { controlStreams, type Link, maxStreams } from "./link.ts";
import { Stream } from "./stream.ts";

let pairOfLinks: LinkPair;
let caller: Link;
let server: Link;
let raw: WebSocket;
let served: Stream[];
let ends: string[];

beforeEach(async () => {
  served = [];
  // Of this test's links alone: those of the one before may end late.
  const heard: string[] = [];
  ends = heard;
  pairOfLinks = await linkPair(
    ({ s }, link) => {
      const stream = new Stream(link, s);
      served.push(stream);
      return stream;
    },
    (side, error) => heard.push(`${side}: ${error.message}`),
  );
  ({ caller, server, raw } = pairOfLinks);
});

afterEach(() => pairOfLinks.close());

const until = async (met: () => boolean): Promise<void> => {
  while (!met()) await nextTurn();
};
async function pair(): Promise<{ mine: Stream; theirs: Stream }> {
  const mine = Stream.open(caller, "exec", {});
  const before = served.length;
  await until(() => served.length > before);
  const theirs = served[before];
  if (theirs === undefined) throw new Error("no stream came");
  return { mine, theirs };
}

describe("a stream", () => {
  it("of a side that nests what it says too deep ends that side's connection, not this process", async () => {
    const { theirs } = await pair();
    const header = Buffer.from(`{"k":"note","s":1,"body":${"[".repeat(8_000)}${"]".repeat(8_000)}}`);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(header.length);
    raw.send(Buffer.concat([length, header]));
    await until(() => theirs.over.aborted);
    expect(ends).toContainEqual(expect.stringContaining("server: protocol error: a header nested"));
  });

  it("carries megabytes both ways at once, exact and in order", async () => {
    const { mine, theirs } = await pair();
    const sent = Buffer.alloc(5_000_000);
    for (let i = 0; i < sent.length; i += 1) sent[i] = (i * 31) % 251;
    const echo = (async () => {
      for await (const chunk of theirs.reader(0)) await theirs.write(1, chunk);
      theirs.end(1);
    })();
    const back = collect(mine.reader(1), sent.length);
    await mine.write(0, sent);
    mine.end(0);
    expect(Buffer.compare(await back, sent)).toBe(0);
    await echo;
    theirs.finish({ fine: true });
    expect(await mine.outcome).toEqual({ fine: true });
    expect([caller.openStreams, server.openStreams]).toEqual([0, 0]);
  });

  it("makes a sender wait that nobody reads, and lets it go on when somebody does", async () => {
    const { mine, theirs } = await pair();
    let sentBytes = 0;
    const chunk = Buffer.alloc(16 * 1024);
    const sending = (async () => {
      for (let i = 0; i < 200; i += 1) {
        await theirs.write(1, chunk);
        sentBytes += chunk.length;
      }
      theirs.finish({});
    })();
    // A second stream gets through, again and again, while the first is stuck.
    for (let i = 0; i < 20; i += 1) {
      const other = await pair();
      other.theirs.finish(i);
      expect(await other.mine.outcome).toBe(i);
    }
    expect(sentBytes).toBeLessThanOrEqual(64 * 1024);
    expect((await collect(mine.reader(1), 10_000_000)).length).toBe(200 * chunk.length);
    await sending;
  });

  it("gives what came before the outcome to a reader that comes late", async () => {
    const { mine, theirs } = await pair();
    await theirs.write(1, Buffer.from("early"));
    theirs.note("a word");
    theirs.finish(1);
    await mine.outcome;
    expect(Buffer.from(await collect(mine.reader(1), 100)).toString()).toBe("early");
    const notes: unknown[] = [];
    mine.onNote((body) => notes.push(body));
    expect(notes).toEqual(["a word"]);
  });

  it("keeps a bounded sum of notes that nobody takes, and ends alone at more", async () => {
    const word = "x".repeat(1000);
    const flooded: Awaited<ReturnType<typeof pair>>[] = [];
    for (let n = 0; n < 20; n += 1) flooded.push(await pair());
    for (const { mine } of flooded) for (let n = 0; n < 5; n += 1) mine.note(word);
    // Of 64 KiB thirteen have all of theirs; the rest is refused, and what they read ends with that.
    const over = flooded.slice(13);
    await until(() => over.every(({ theirs }) => theirs.over.aborted));
    const refusal = { name: "BoundaryError", code: "refused", retryable: false };
    for (const { theirs, mine } of over) {
      await expect(collect(theirs.reader(0), 10)).rejects.toMatchObject(refusal);
      await expect(mine.outcome).rejects.toMatchObject(refusal);
    }
    // Notes that are taken need no room.
    const heard: unknown[] = [];
    const [taken] = flooded;
    taken?.theirs.onNote((body) => heard.push(body));
    for (let n = 0; n < 100; n += 1) taken?.mine.note(word);
    await until(() => heard.length === 105);
    // Streams that ended gave theirs back; one alone may have no more than its part.
    for (const { theirs } of flooded) theirs.finish(1);
    const after = await pair();
    for (let n = 0; n < 8; n += 1) after.mine.note(word);
    after.mine.end(0);
    expect((await collect(after.theirs.reader(0), 10)).length).toBe(0);
    after.mine.note(word);
    await expect(after.mine.outcome).rejects.toMatchObject(refusal);
    expect([caller.ended, server.ended]).toEqual([null, null]);
  });

  it("brings errors of their kind", async () => {
    const { mine, theirs } = await pair();
    theirs.fail(new BoundaryError("sandbox", "full", "no room", { retryable: true, retryAfterMs: 5 }));
    await expect(mine.outcome).rejects.toMatchObject({
      code: "full",
      retryable: true,
      retryAfterMs: 5,
      message: "no room",
    });
    await expect(collect(mine.reader(1), 10)).rejects.toThrow("no room");
  });

  it("tells the server when the caller lets go", async () => {
    const { mine, theirs } = await pair();
    const stuck = theirs.write(1, Buffer.alloc(1_000_000));
    mine.cancel(new Error("enough"));
    await expect(mine.outcome).rejects.toThrow("enough");
    await expect(stuck).rejects.toThrow("the caller let go");
    expect(theirs.over.aborted).toBe(true);
    theirs.finish("nobody hears this");
    const next = await pair();
    next.theirs.finish("fine");
    expect(await next.mine.outcome).toBe("fine");
  });

  it("ends on both sides with the connection, once", async () => {
    const { mine, theirs } = await pair();
    const reading = collect(theirs.reader(0), 100);
    raw.terminate();
    await expect(mine.outcome).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await expect(reading).rejects.toMatchObject({ code: "unavailable" });
    await until(() => ends.length === 2);
    expect(() => Stream.open(caller, "exec", {})).toThrow(BoundaryError);
  });
});

/** Of any size. */
function rawFrame(header: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const message = Buffer.alloc(4 + json.length);
  message.writeUInt32BE(json.length);
  json.copy(message, 4);
  return message;
}

describe("a connection", () => {
  it("that is full of calls still takes those that renew and close", async () => {
    const calls = Array.from({ length: maxStreams - controlStreams }, () => Stream.open(caller, "exec", {}));
    const full = { code: "unavailable", retryable: true };
    const more = () => Stream.open(caller, "exec", {});
    expect(more).toThrow(expect.objectContaining(full));
    const closing = Array.from({ length: controlStreams }, (_, n) =>
      Stream.open(caller, (["renew", "close", "held", "list"] as const)[n % 4] ?? "close", {}),
    );
    expect(() => Stream.open(caller, "close", {})).toThrow(expect.objectContaining(full));
    await until(() => served.length === maxStreams);
    for (const stream of served) stream.finish("done");
    expect(new Set(await Promise.all([...calls, ...closing].map(({ outcome }) => outcome)))).toEqual(new Set(["done"]));
    expect([caller.ended, server.ended]).toEqual([null, null]);
    expect(() => more().cancel(new Error("enough"))).not.toThrow();
  });

  it.each([
    [
      "more data than was granted",
      (s: number) => Array.from({ length: 2 }, () => encodeFrame({ k: "data", s, c: 0 }, Buffer.alloc(64 * 1024))),
    ],
    ["a stream that is open already", (s: number) => [encodeFrame({ k: "open", s, method: "exec", params: {} })]],
    ["what is no frame", () => [Buffer.from("hello")]],
    ["a note of any length", (s: number) => [rawFrame({ k: "note", s, body: "x".repeat(20_000) })]],
    [
      "bytes on a channel that is not the caller's",
      (s: number) => [encodeFrame({ k: "data", s, c: 1 }, Buffer.alloc(1))],
    ],
  ])("ends at %s", async (_what, frames) => {
    const { mine } = await pair();
    for (const frame of frames(mine.id)) raw.send(frame);
    await expect(mine.outcome).rejects.toMatchObject({ code: "unavailable" });
    await until(() => ends.some((end) => end.startsWith("server: protocol error")));
  });
});
