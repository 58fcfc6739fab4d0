/** Pages over rows as they were seeded: real Postgres, API and production pages, and no worker that would move the rows on. */
import { once } from "node:events";
import { createSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import type { ApiParts } from "../../../apps/api/src/compose.ts";
import type { ApiSettings } from "../../../apps/api/src/env.ts";
import { createLog } from "../../../apps/api/src/log.ts";
import { startTestApi, type TestApi } from "../../../apps/api/testing/start-api.ts";
import { ensureWebBuilt } from "../../../apps/cli/src/start/web-build.ts";
import { freePort, root, startPages, untilPagesAnswer } from "./walk-stack.ts";

export interface PageStack {
  readonly url: string;
  readonly api: TestApi;
  /** A fresh one-time link. */
  signInLink(): Promise<string>;
  close(): Promise<void>;
}

export async function startPageStack(
  parts: ApiParts = {},
  settings: Partial<Omit<ApiSettings, "webUrl">> = {},
): Promise<PageStack> {
  await ensureWebBuilt(root, () => {});
  const webPort = await freePort();
  const web = startPages(webPort);
  const api = await startTestApi(
    { ...settings, webUrl: new URL(`http://127.0.0.1:${webPort}`) },
    createLog("silent"),
    parts,
  );
  await untilPagesAnswer(webPort, web);
  return {
    url: api.url,
    api,
    signInLink: async () => {
      const { code } = await createSignInCode(api.database.pool);
      return `${api.url}/sign-in?code=${encodeURIComponent(code)}`;
    },
    close: async () => {
      await api.close();
      web.kill("SIGTERM");
      if (web.exitCode === null && web.signalCode === null) await once(web, "exit");
    },
  };
}
