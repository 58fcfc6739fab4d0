import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const source = path.resolve(import.meta.dirname, "..");

test("states are drawn, not typed: what fonts make of two bars or half a disc differs", () => {
  const typed = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !file.includes(".test."))
    .filter((file) => /[\u2016\u25d0]/u.test(readFileSync(path.join(source, file), "utf8")));
  expect(typed).toEqual([]);
});
