/** A whole api process's worth of server inside the test: real Postgres, real sockets, a free port, its own data folder. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { type ApiParts, compose } from "../src/compose.ts";
import { type ApiSettings, readSettings } from "../src/env.ts";
import { createLog, type Log } from "../src/log.ts";
import { ownerTokenFile } from "../src/owner-token.ts";

export interface TestApi {
  readonly url: string;
  readonly port: number;
  readonly ownerToken: string;
  readonly dataFolder: string;
  readonly database: TestDatabase;
  /** A request as the owner; a path starting with a slash, headers win over the token. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Stops this server and starts another on the same port, data folder and database. */
  restart(): Promise<void>;
  /** One more server on the same database and data folder, as a second process would be. */
  sibling(): Promise<{ readonly port: number; close(): Promise<void> }>;
  close(): Promise<void>;
}

/** @param log where the server writes; absent: nowhere */
export async function startTestApi(
  options: Partial<ApiSettings> = {},
  log: Log = createLog("silent"),
  parts: ApiParts = {},
): Promise<TestApi> {
  const database = await createTestDatabase();
  const dataFolder = await mkdtemp(join(tmpdir(), "rolldeck-api-"));
  const settings = {
    ...readSettings({
      ROLLDECK_DATABASE_URL: database.url,
      ROLLDECK_DATA_DIR: dataFolder,
      ROLLDECK_PORT: "0",
      ROLLDECK_LOG_LEVEL: "silent",
    }),
    ...options,
  };
  let api = await compose(settings, log, parts);
  const { url, port } = await api.listen();
  const ownerToken = (await readFile(ownerTokenFile(dataFolder), "utf8")).trim();
  return {
    url,
    port,
    ownerToken,
    dataFolder,
    database,
    fetch: (path, init = {}) =>
      fetch(`${url}${path}`, {
        redirect: "manual",
        ...init,
        headers: { authorization: `Bearer ${ownerToken}`, ...init.headers },
      }),
    async restart() {
      await api.close();
      api = await compose({ ...settings, port }, log, parts);
      await api.listen();
    },
    async sibling() {
      const other = await compose({ ...settings, port: 0 }, log, parts);
      const bound = await other.listen();
      return { port: bound.port, close: () => other.close() };
    },
    async close() {
      await api.close();
      await database.drop();
      await rm(dataFolder, { recursive: true, force: true });
    },
  };
}

export const jsonPost = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

export const smallConfig = { taskSets: [{ name: "key-chain" }], agent: { maxContextTokens: 2048 } };
