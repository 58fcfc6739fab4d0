/** The promise of tokens.css: text 4.5:1, marks 3:1, in both themes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const css = readFileSync(fileURLToPath(new URL("./tokens.css", import.meta.url)), "utf8");
const block = (marker: string): Map<string, string> => {
  const from = css.indexOf(marker);
  const body = css.slice(css.indexOf("{", from) + 1, css.indexOf("}", from));
  return new Map([...body.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g)].map((match) => [match[1] ?? "", match[2] ?? ""]));
};
const themes = { light: block('[data-theme="light"]'), dark: block('[data-theme="dark"]') };

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

describe.each(Object.entries(themes))("%s", (_name, colours) => {
  const of = (name: string) => {
    const value = colours.get(name);
    if (!value) throw new Error(`no colour ${name}`);
    return value;
  };
  const ansi = Array.from({ length: 16 }, (_, index) => `ansi-${index}`);
  test.each([
    ...["g7", "g8", "g9", "accent-text", "status-running", "status-done", "status-failed", "status-paused"],
    ...ansi,
  ])("%s reads as text on the page and on panels", (name) => {
    expect(contrast(of(name), of("g0"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of(name), of("g1"))).toBeGreaterThanOrEqual(4.5);
  });
  test.each([
    ["status-failed", "failed-soft"],
    ["status-paused", "paused-soft"],
    ["status-done", "done-soft"],
    ["status-running", "running-soft"],
    ["accent-text", "accent-soft"],
    ["on-accent", "accent"],
  ])("%s reads on %s", (text, ground) => {
    expect(contrast(of(text), of(ground))).toBeGreaterThanOrEqual(4.5);
  });
  test.each([
    ...Array.from({ length: 8 }, (_, index) => `run-${index}`),
    "g6",
    "stage-init",
    "stage-run",
    "stage-evaluate",
    "stage-update",
    "accent",
  ])("%s shows as a mark", (name) => {
    expect(contrast(of(name), of("g0"))).toBeGreaterThanOrEqual(3);
  });
});

test("both themes name the same colours", () => {
  expect([...themes.dark.keys()].sort()).toEqual([...themes.light.keys()].sort());
});

test("greys too light for words are left to what is no word: an icon, a separator", () => {
  const source = fileURLToPath(new URL("..", import.meta.url));
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".tsx"));
  const light = files.filter((file) => /[\s"]text-g[1-6]\b/.test(readFileSync(join(source, file), "utf8")));
  expect(light.sort()).toEqual(["charts/line-chart.tsx", "features/shell/top-bar.tsx"]);
});
