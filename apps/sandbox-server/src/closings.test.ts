import { Stream } from "@rolldeck/sandbox/remote/stream";
import { type LinkPair, linkPair } from "@rolldeck/sandbox/testing/link-pair";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../testing/wait-until.ts";
import { Closings } from "./closings.ts";

let host: LinkPair;
let asked: { readonly id: string; readonly stream: Stream }[];
let troubles: string[];

const idOf = (n: number): string => `sbx_${String(n).padStart(20, "0")}`;
const underWay = () => asked.filter(({ stream }) => !stream.over.aborted);

beforeEach(async () => {
  [asked, troubles] = [[], []];
  host = await linkPair(({ s, params }, link) => {
    const stream = new Stream(link, s);
    asked.push({ id: (params as { sandbox: string }).sandbox, stream });
    return stream;
  });
});
afterEach(() => host.close());

describe("closing what nobody holds", () => {
  it("is asked for once each, some at a time, however often it is found", async () => {
    const closings = new Closings(
      () => host.caller,
      (id) => troubles.push(id),
    );
    const ids = Array.from({ length: 100 }, (_, n) => idOf(n));
    for (let round = 0; round < 3; round += 1) for (const id of ids) closings.add(id);
    let most = 0;
    while (asked.length < 100 || underWay().length > 0) {
      await waitUntil(() => underWay().length > 0);
      most = Math.max(most, underWay().length);
      for (const id of ids.slice(0, 20)) if (underWay().some((each) => each.id === id)) closings.add(id);
      for (const { stream } of underWay()) stream.finish({});
    }
    expect(asked.map(({ id }) => id)).toEqual(ids);
    expect([most, troubles]).toEqual([16, []]);
    // One that is found again after that is closed again.
    closings.add(idOf(0));
    await waitUntil(() => asked.length === 101);
    for (const { stream } of underWay()) stream.finish({});
    await waitUntil(() => host.caller.openStreams === 0);
  });

  it("ends with the connection; the rest is left to the next time", async () => {
    let link: typeof host.caller | null = host.caller;
    const closings = new Closings(
      () => link,
      (id) => troubles.push(id),
    );
    for (let n = 0; n < 40; n += 1) closings.add(idOf(n));
    await waitUntil(() => asked.length === 16);
    link = null;
    host.caller.close("away");
    await waitUntil(() => troubles.length === 16);
    closings.add(idOf(50));
    expect(asked.length).toBe(16);
  });
});
