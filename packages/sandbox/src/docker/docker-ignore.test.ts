import { expect, test } from "vitest";
import { DockerIgnore } from "./docker-ignore.ts";

test.each<[text: string, out: readonly string[], kept: readonly string[]]>([
  ["*.log", ["a.log"], ["deep/a.log", "a.logs"]],
  ["**/*.log", ["a.log", "deep/er/a.log"], ["a.txt"]],
  ["node_modules", ["node_modules", "node_modules/a/b"], ["deep/node_modules"]],
  ["/build/", ["build/x"], ["rebuild"]],
  ["*\n!keep\n!keep/**", ["a", "b/c"], ["keep", "keep/c"]],
  ["docs\n!docs/kept.md", ["docs/a.md"], ["docs/kept.md"]],
  ["# comment\n\n  spaced.txt  \n", ["spaced.txt"], ["# comment", "comment"]],
  ["a?c\n[x-z]1\n[^x-z]2", ["abc", "y1", "a2"], ["ac", "a1", "y2"]],
  ["deep/**/cache", ["deep/cache", "deep/a/b/cache/x"], ["cache", "deeper/cache"]],
  ["a\\*b", ["a*b"], ["axb"]],
  ["(x)+.txt", ["(x)+.txt"], ["xx.txt"]],
])("the last line that matches decides: %j", (text, out, kept) => {
  const ignore = new DockerIgnore(text);
  expect(out.filter((path) => !ignore.leavesOut(path))).toEqual([]);
  expect(kept.filter((path) => ignore.leavesOut(path))).toEqual([]);
});
