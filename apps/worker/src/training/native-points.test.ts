import { expect, it } from "vitest";
import { mostNativePoints, nativePoints } from "./native-points.ts";

it("keeps a backend's own names, and says of sums that they are", () => {
  expect(nativePoints("tinker", { loss: 2 }, { "grad/norm": 3 })).toEqual({
    "native/tinker/loss:sum": 2,
    "native/tinker/grad/norm": 3,
  });
});

it("keeps a bounded number of them, the same ones each time", () => {
  const names = Array.from({ length: 5_000 }, (_, at) => [`m${String(at).padStart(5, "0")}`, at] as const);
  const kept = nativePoints("tinker", {}, Object.fromEntries(names));
  expect(Object.keys(kept)).toHaveLength(mostNativePoints);
  expect(nativePoints("tinker", {}, Object.fromEntries(names.toReversed()))).toEqual(kept);
});

it("leaves out names that can't be stored", () => {
  expect(nativePoints("tinker", { "a\0": 1, "b\ud800": 1, "": 1, ["x".repeat(200)]: 1 }, { ok: 1 })).toEqual({
    "native/tinker/ok": 1,
    // The empty name with what its sum is called.
    "native/tinker/:sum": 1,
  });
});
