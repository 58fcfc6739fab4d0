import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findModelServers } from "./find-model-servers.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-doctor-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function listed(content: unknown): string {
  const file = path.join(folder, "endpoints.json");
  writeFileSync(file, JSON.stringify(content));
  return file;
}

test("a listed Tinker server that answers says what it serves; one that does not, why; no key is shown", async () => {
  const server = await startScriptedWorker({ foreign: true });
  const file = listed([
    { name: "skyrl", kind: "tinker", urls: [server.url], keyEnv: "SKYRL_KEY" },
    { name: "refused", kind: "tinker", urls: [server.url], keys: ["tml-canary"] },
    { name: "gone", kind: "tinker", urls: ["http://127.0.0.1:9"] },
    { name: "chat", kind: "openai-chat", urls: ["http://127.0.0.1:9"] },
  ]);
  const findings = await findModelServers({ ROLLDECK_ENDPOINTS: file, SKYRL_KEY: server.apiKey });
  await server.close();
  expect(findings.map(({ what, state }) => [what, state])).toEqual([
    ["Tinker server: skyrl", "ok"],
    ["Tinker server: refused", "warning"],
    ["Tinker server: gone", "warning"],
  ]);
  expect(findings[0]?.detail).toBe("serves quickstart");
  expect(JSON.stringify(findings)).not.toContain("tml-canary");
});

test("without a list nothing is looked at; one that can't be read is a finding", async () => {
  expect(await findModelServers({})).toEqual([]);
  const file = listed([{ name: "skyrl", kind: "tinker", urls: ["http://127.0.0.1:9"], keyEnv: "NOT_SET" }]);
  expect(await findModelServers({ ROLLDECK_ENDPOINTS: file })).toMatchObject([
    { what: "Model servers", state: "failed" },
  ]);
});
