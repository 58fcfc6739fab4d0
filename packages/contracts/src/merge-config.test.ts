import fc from "fast-check";
import { expect, test } from "vitest";
import { mergeConfig } from "./merge-config.ts";

test("mappings are merged, all else is replaced", () => {
  const base = {
    name: "a",
    backend: { name: "gpu-worker", server: "x" },
    taskSets: [{ name: "one" }, { name: "two" }],
  };
  const change = { backend: { server: null }, taskSets: [{ name: "three" }], seed: 3 };
  expect(mergeConfig(base, change)).toEqual({
    name: "a",
    backend: { name: "gpu-worker", server: null },
    taskSets: [{ name: "three" }],
    seed: 3,
  });
  expect(base.backend.server).toBe("x");
});

test("a key called __proto__ is a key", () => {
  const merged = mergeConfig({ a: 1 }, JSON.parse('{"__proto__": {"polluted": true}}'));
  expect(Object.keys(Object(merged))).toEqual(["a", "__proto__"]);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

const Mapping = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
// JSON has one zero.
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test("no change changes nothing, a change made twice is made once, and the change wins", () => {
  fc.assert(
    fc.property(Mapping, Mapping, (a, b) => {
      const [base, change] = [json(a), json(b)];
      expect(mergeConfig(base, {})).toEqual(base);
      const merged = mergeConfig(base, change);
      expect(mergeConfig(merged, change)).toEqual(merged);
      expect(mergeConfig({}, change)).toEqual(change);
    }),
  );
});
