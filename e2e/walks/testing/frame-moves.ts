import type { Page } from "playwright-core";

/**
 * Whether the frame around pages stays where it is: pages scroll in boxes of their own, and the document is as large as the window. A
 * page that makes it larger takes rail and top bar away when it is scrolled to its end.
 * @returns empty, or by how much the document is larger
 */
export const frameMoves = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const { scrollWidth, scrollHeight } = document.documentElement;
    const [wider, higher] = [scrollWidth - window.innerWidth, scrollHeight - window.innerHeight];
    return wider > 0 || higher > 0 ? `${wider} px wider, ${higher} px higher than the window` : "";
  });
