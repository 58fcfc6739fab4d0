/** Chromium without its network habits. Where it is missing, walks are skipped with the command that brings it. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

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
