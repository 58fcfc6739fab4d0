import type { Locator } from "playwright-core";

/** How many colours a canvas shows. */
export const canvasColours = (canvas: Locator): Promise<number> =>
  canvas.evaluate((element: HTMLCanvasElement) => {
    const { data } = element.getContext("2d")?.getImageData(0, 0, element.width, element.height) ?? { data: [] };
    const seen = new Set<string>();
    for (let at = 0; at < data.length; at += 4) seen.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return seen.size;
  });
