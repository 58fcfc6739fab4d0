/** Chromium without its network habits, and a page in it that is signed in. Where it is missing, walks are skipped with the command that brings it. */
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";

const executablePath = process.env.ROLLDECK_CHROMIUM ?? "/usr/bin/chromium";
export const chromiumMissing = !existsSync(executablePath);
export const chromiumName = chromiumMissing
  ? `Chromium is not at ${executablePath}: apt-get install -y chromium`
  : "in Chromium";

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

/** How long a walk waits for what it looks for. */
export const patienceMs = 45_000;

export interface SignedIn {
  readonly browser: Browser;
  readonly page: Page;
  /** What its scripts threw so far. */
  readonly pageErrors: readonly string[];
}

/** @param link a one-time link of the stack's */
export async function openSignedIn(link: string, waitMs = patienceMs): Promise<SignedIn> {
  const browser = await launchBrowser();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(waitMs);
  const pageErrors: string[] = [];
  page.on("pageerror", (error) => pageErrors.push(error.message));
  await page.goto(link);
  await page.waitForURL("**/runs");
  return { browser, page, pageErrors };
}
