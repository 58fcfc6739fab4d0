/** Text that no person writes: other rollouts wait for the thread that reads it. */
import { expect, test, vi } from "vitest";
import { indexFile } from "./indexed-file.ts";

vi.setConfig({ testTimeout: 60_000 });

const times = 100_000;

test.each([
  ["brackets that never close", "a.py", `x = ${"(".repeat(9 * times)}`],
  ["brackets within brackets", "a.ts", `let x = ${"[".repeat(3 * times)}${"]".repeat(3 * times)}`],
  ["classes within classes", "A.java", `${"class A { ".repeat(times / 2)}${"}".repeat(times / 2)}`],
  ["imports that never close", "a.rs", `use a::${"{".repeat(9 * times)};`],
])("%s are text, and take no more than their time", async (_, path, text) => {
  const startedAt = performance.now();
  const file = await indexFile(path, Buffer.from(text));
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(file?.source.entities.length).toBeLessThan(1000);
  expect(file?.bytes).toBeLessThan(64 * 1024 * 1024);
  expect((await indexFile("b.py", Buffer.from("def found(): pass\n")))?.source.entities).toMatchObject([
    { name: "found" },
  ]);
});

test("what is deep, as code may be, is found", async () => {
  const deep = Array.from({ length: 60 }, (_, at) => `${" ".repeat(at)}def f${at}():\n`).join("");
  const file = await indexFile("a.py", Buffer.from(`${deep}${" ".repeat(60)}pass\n`));
  expect(file?.source.entities).toHaveLength(60);
});
