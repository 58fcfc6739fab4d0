/** Run colours can be told apart, in both themes and without red-green vision. Distances are Euclidean in OKLab. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const css = readFileSync(fileURLToPath(new URL("./tokens.css", import.meta.url)), "utf8");
const palettes = css
  .split('[data-theme="dark"]')
  .map((theme) => [...theme.matchAll(/--run-\d: (#[0-9a-f]{6})/g)].map((match) => match[1] ?? ""));

type Triple = readonly [number, number, number];
/** Dichromacy as a matrix over linear RGB, after Machado, Oliveira and Fernandes (2009), severity 1. */
const visions: Record<string, readonly [Triple, Triple, Triple]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

const dot = (a: Triple, b: Triple): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const through = (rows: readonly [Triple, Triple, Triple], v: Triple): Triple => [
  dot(rows[0], v),
  dot(rows[1], v),
  dot(rows[2], v),
];
function linear(hex: string): Triple {
  const channel = (at: number) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}
/** Björn Ottosson's OKLab (2020). */
function oklab(rgb: Triple): Triple {
  const cone = (row: Triple) => Math.cbrt(Math.max(0, dot(row, rgb)));
  const lms: Triple = [
    cone([0.4122214708, 0.5363325363, 0.0514459929]),
    cone([0.2119034982, 0.6806995451, 0.1073969566]),
    cone([0.0883024619, 0.2817188376, 0.6299787005]),
  ];
  return through(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    lms,
  );
}

function closest(palette: readonly string[], vision: readonly [Triple, Triple, Triple]): number {
  const points = palette.map((hex) => oklab(through(vision, linear(hex))));
  return Math.min(
    ...points.flatMap((a, i) => points.slice(0, i).map((b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]))),
  );
}

describe.each([
  ["light", palettes[0] ?? []],
  ["dark", palettes[1] ?? []],
])("%s", (_name, palette) => {
  test.each(Object.entries(visions))("eight colours apart with %s vision", (name, vision) => {
    expect(palette).toHaveLength(8);
    expect(closest(palette, vision)).toBeGreaterThan(name === "normal" ? 0.15 : 0.09);
  });
});
