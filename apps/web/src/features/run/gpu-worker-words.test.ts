import { expect, test } from "vitest";
import { gpuWorkerWords } from "./gpu-worker-words.ts";

const worker = (over: object = {}) => ({
  ...({ role: "colocated", replica: 0, state: "ready", wanted: true, reason: null, host: "rack1" } as const),
  ...over,
});
const noRoom = { code: "no-room", message: "waits for 2 GPUs; all that would do are taken", remedy: null } as const;

test.each([
  ["nothing yet", [], false, "asked for when the run is prepared"],
  ["nothing ever", [], true, "the run ended before it asked for any"],
  ["all there", [worker()], false, "1 of 1 ready on rack1"],
  [
    "one that waits",
    [worker({ role: "trainer" }), worker({ role: "sampler", replica: 1, state: "queued", host: null, reason: noRoom })],
    false,
    "1 of 2 ready on rack1; sampler 2 waits for 2 GPUs; all that would do are taken",
  ],
  ["one that starts", [worker({ state: "starting" })], false, "0 of 1 ready; colocated starts on rack1"],
  [
    "one that waits without a word",
    [worker({ state: "queued" })],
    false,
    "0 of 1 ready; colocated waits for its place",
  ],
  ["the last on its way out", [worker({ state: "stopping", wanted: false })], true, "being given back"],
  ["none any more", [worker({ state: "stopped", wanted: false })], true, "given back"],
  [
    "a reader beside what is over",
    [worker({ state: "stopped", wanted: false }), worker({ role: "reader" })],
    true,
    "1 of 1 ready on rack1",
  ],
])("of %s it says so", (_, workers, isOver, words) => {
  expect(gpuWorkerWords(workers, isOver)).toBe(words);
});
