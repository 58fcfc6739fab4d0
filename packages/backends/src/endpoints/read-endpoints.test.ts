import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { expect, test } from "vitest";
import { endpointNames, namesJudge, parseEndpoints, readEndpoints } from "./read-endpoints.ts";

const variables: Readonly<Record<string, string>> = { HOSTED_KEY: "sk-canary-env", SECOND: "sk-canary-two" };
const variable = (name: string) => variables[name];

const list = `
- name: engines
  kind: openai-completions
  urls: ["http://engine-a:8000/v1", "http://engine-b:8000/v1"]
- name: hosted
  kind: openai-chat
  urls: ["https://api.example.com"]
  keys: [sk-canary-file]
  keyEnv: [HOSTED_KEY, SECOND]
  model: big-model
  judge: true
`;

test("YAML and JSON, keys in the file and from named variables", () => {
  const [engines, hosted] = parseEndpoints(list, variable);
  expect(engines).toMatchObject({ kind: "openai-completions", keys: [], judge: false, maxTries: 8 });
  expect(hosted?.keys).toEqual(["sk-canary-file", "sk-canary-env", "sk-canary-two"]);
  expect(hosted).not.toHaveProperty("keyEnv");
  const json = JSON.stringify([{ name: "a", kind: "vllm-generate", urls: ["http://a"] }]);
  expect(parseEndpoints(json, variable)).toHaveLength(1);
  expect(parseEndpoints("[]", variable)).toEqual([]);
});

test("whether there is a judge needs no variable either", () => {
  expect(namesJudge(list)).toBe(true);
  expect(namesJudge("[]")).toBe(false);
});

test("names to show hold neither addresses nor keys, and need no variable", () => {
  expect(endpointNames(list)).toEqual([
    { name: "engines", backend: "openai-completions" },
    { name: "hosted", backend: "openai-chat" },
  ]);
});

test.each([
  ["not: a list", "endpoints"],
  ["- {name: a, kind: openai-chat, urls: []}", "endpoints[0].urls"],
  ["- {name: a, kind: openai-chat, urls: ['ftp://x']}", "endpoints[0].urls[0]"],
  ["- {name: a, kind: nonsense, urls: ['http://x']}", "endpoints[0].kind"],
  ["- {name: 'a b', kind: openai-chat, urls: ['http://x']}", "endpoints[0].name"],
  ["- {name: a, kind: openai-chat, urls: ['http://x'], sk-canary-key: 1}", "endpoints[0]"],
  ["- {name: a, kind: openai-chat, urls: ['http://x'], keys: [sk-canary, '']}", "endpoints[0].keys[1]"],
  ["- {name: a, kind: openai-chat, urls: ['http://x'], keyEnv: MISSING}", "endpoints[0].keyEnv"],
  ["- {name: a, kind: openai-chat, urls: ['http://x'], judge: true}", "endpoints[0].model"],
  ["- {name: a, kind: vllm-generate, urls: ['http://x'], judge: true, model: m}", "endpoints[0].judge"],
  [
    "- {name: a, kind: openai-chat, urls: ['http://x']}\n- {name: a, kind: openai-chat, urls: ['http://y']}",
    "endpoints[1].name",
  ],
  ["- {name: a, kind: tinker, urls: ['http://x', 'http://y']}", "endpoints[0].urls"],
  ["- {name: a, kind: gpu-worker, urls: ['http://x'], keys: [sk-canary, sk-canary2]}", "endpoints[0].keys"],
  ["- {name: a, keys: [sk-canary", "ROLLDECK_ENDPOINTS"],
  ["- &a {name: a, kind: openai-chat, urls: ['http://x']}\n- *a", "ROLLDECK_ENDPOINTS"],
])("%j is refused at %s, without a value", (text, path) => {
  const error = catching(() => parseEndpoints(text, variable));
  expect(error.issues.map((issue) => issue.path)).toContain(path);
  expect(JSON.stringify(error.issues)).not.toMatch(/canary/);
});

test("a file, none, and one that is not there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-endpoints-"));
  await writeFile(join(folder, "endpoints.yaml"), list);
  expect(await readEndpoints(join(folder, "endpoints.yaml"), variable)).toHaveLength(2);
  expect(await readEndpoints(null, variable)).toEqual([]);
  await expect(readEndpoints(join(folder, "missing.yaml"), variable)).rejects.toThrow(/ENOENT/);
  await rm(folder, { recursive: true });
});

function catching(act: () => unknown): InputError {
  try {
    act();
  } catch (error) {
    if (error instanceof InputError) return error;
    throw error;
  }
  return expect.unreachable("it should have been refused");
}
