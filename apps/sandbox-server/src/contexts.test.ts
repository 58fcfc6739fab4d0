/** Build contexts on the gateway's disk: how much of it clients may fill, and for how long. */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { waitUntil } from "../testing/wait-until.ts";
import { Contexts } from "./contexts.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-contexts-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const whole = (byte: number, size: number) => {
  const bytes = Buffer.alloc(size, byte);
  return { hash: hashOf(bytes), put: (to: Contexts) => to.put(hashOf(bytes), size, pieces(bytes)) };
};
async function* pieces(...all: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}
/** Says a little, then nothing for as long as anyone waits. */
async function* standstill(until: Promise<unknown>): AsyncGenerator<Uint8Array> {
  yield Buffer.alloc(10);
  await until;
}

it("those that are coming count, the longest unused go for them, and what does not fit waits", async () => {
  const contexts = new Contexts(folder, 1_000);
  const [old, recent] = [whole(1, 400), whole(2, 400)];
  await old.put(contexts);
  await sleep(20);
  await recent.put(contexts);
  let release = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = expect(contexts.put("0".repeat(64), 600, standstill(stopped))).rejects.toMatchObject({
    code: "refused",
  });
  await waitUntil(async () => !(await readdir(folder)).includes(old.hash));
  expect(await contexts.find(recent.hash)).toEqual({ bytes: 400 });
  await expect(whole(3, 500).put(contexts)).rejects.toMatchObject({ code: "full", retryable: true });
  await expect(whole(3, 1_001).put(contexts)).rejects.toMatchObject({ code: "refused" });
  release();
  await slow;
  await whole(3, 500).put(contexts);
  expect((await readdir(folder)).toSorted()).toEqual([recent.hash, whole(3, 500).hash].toSorted());
});

it("one whose sender stands still is given up, and its room is free again", async () => {
  const contexts = new Contexts(folder, 1_000, 100);
  const never = new Promise(() => undefined);
  await expect(contexts.put("0".repeat(64), 1_000, standstill(never))).rejects.toMatchObject({ code: "unavailable" });
  await whole(1, 1_000).put(contexts);
  expect(await readdir(folder)).toEqual([whole(1, 1_000).hash]);
});
