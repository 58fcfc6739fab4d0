import { bareEndpoint, type Endpoint } from "@rolldeck/backends/openai/endpoint";
import { BackendConfig } from "@rolldeck/contracts/backend-config";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import { expect, test } from "vitest";
import { OpenedBackends } from "./model-backends.ts";

const engines: Endpoint = {
  ...bareEndpoint("openai-completions", "http://engine-a:8000/v1"),
  name: "engines",
  urls: ["http://engine-a:8000/v1", "http://user:pw-canary@engine-b:8000/v1"],
  keys: ["sk-canary"],
};

function backends(supervised: { url: string; apiKey: string } | null = { url: "http://gpu", apiKey: "tml-own" }) {
  const opened: { kind: string; urls: readonly string[]; keys: readonly (string | null)[] }[] = [];
  const closed: string[] = [];
  const opening = (kind: string, urls: readonly string[], keys: readonly (string | null)[]): StepBackend => {
    opened.push({ kind, urls, keys });
    const close = async () => void closed.push(urls[0] ?? "");
    return { close } as StepBackend;
  };
  const made = new OpenedBackends(supervised, [engines], {
    tinker: ({ url, apiKey, dialect }) => opening(dialect, [url], [apiKey]),
    sampling: ({ kind, urls, keys }) => opening(kind, urls, keys),
  });
  return { made, opened, closed };
}
const config = (changes: object = {}) => ({ runId: "run", config: { backend: BackendConfig.parse(changes) } });

test("a config that names none means the supervised server, by its own address too, and opens it once", () => {
  const { made, opened } = backends();
  expect(made.of(config())).toBe(made.of(config({ endpoint: "http://gpu/" })));
  expect(opened).toEqual([{ kind: "rolldeck", urls: ["http://gpu"], keys: ["tml-own"] }]);
  expect(made.urlOf(config())).toBe("http://gpu");
  expect(backends(null).made.knows(config())).toBe(false);
  expect(() => backends(null).made.of(config())).toThrow(/no address/);
});

test("by name: all its addresses and keys; by one of its addresses: that one with the keys", () => {
  const { made, opened } = backends();
  made.of(config({ name: "openai-completions", server: "engines" }));
  made.of(config({ name: "openai-completions", endpoint: "http://engine-b:8000/v1/" }));
  expect(opened).toEqual([
    { kind: "openai-completions", urls: engines.urls, keys: ["sk-canary"] },
    { kind: "openai-completions", urls: [engines.urls[1]], keys: ["sk-canary"] },
  ]);
});

test("keys go nowhere else: another address, or the same one spoken to in another way, gets none", () => {
  const { made, opened } = backends();
  made.of(config({ name: "openai-completions", endpoint: "http://elsewhere" }));
  made.of(config({ name: "openai-chat", endpoint: "http://engine-a:8000/v1" }));
  made.of(config({ endpoint: "http://other-gpu" }));
  expect(opened.map(({ kind, keys }) => [kind, keys])).toEqual([
    ["openai-completions", []],
    ["openai-chat", []],
    ["rolldeck", [null]],
  ]);
});

test("a name that is not listed, or listed as another kind, is refused with the reason", () => {
  const { made } = backends();
  const unknown = config({ name: "openai-chat", server: "nobody" });
  expect(made.knows(unknown)).toBe(false);
  expect(() => made.of(unknown)).toThrow(/no server "nobody"/);
  expect(() => made.of(config({ name: "openai-chat", server: "engines" }))).toThrow(/listed as openai-completions/);
});

test("a Tinker server is spoken to as its config says, under the name that its list gives the model", () => {
  const { made, opened } = backends();
  const endpoint = "http://skyrl:8000";
  const skyrl = made.of(config({ name: "tinker", dialect: "skyrl", endpoint }));
  expect(made.of(config({ name: "tinker", dialect: "hosted", endpoint }))).not.toBe(skyrl);
  expect(opened.map(({ kind }) => kind)).toEqual(["skyrl", "hosted"]);
  expect(() => made.of(config({ name: "tinker", endpoint }))).toThrow(/needs backend.dialect/);
});

test("addresses are shown without their password", () => {
  const { made } = backends();
  const shown = made.urlOf(config({ name: "openai-completions", endpoint: "http://engine-b:8000/v1" }));
  expect(shown).toBe("http://engine-b:8000/v1");
});

test("closing closes every connection", async () => {
  const { made, closed } = backends();
  made.of(config());
  made.of(config({ name: "openai-completions", server: "engines" }));
  await made.close();
  expect(closed).toHaveLength(2);
});
