import { expect, test } from "vitest";
import { InputError } from "./errors.ts";
import { mcpRefusal, parseMcpServers } from "./mcp-servers.ts";

const parse = (value: unknown) => parseMcpServers(JSON.stringify(value), "/etc/mcp.json");

test("a server by command or by address, with what is not said filled in", () => {
  const { files, web } = parse({
    files: { command: "npx", args: ["-y", "files"], env: { ROOT: "/srv", KEY: { env: "FILES_KEY" } } },
    web: { url: "https://tools.example.org/mcp", headers: { Authorization: { env: "KEY", prefix: "Bearer " } } },
  });
  expect(files).toEqual({
    ...{ command: "npx", args: ["-y", "files"], cwd: null, sandbox: false },
    env: { ROOT: "/srv", KEY: { env: "FILES_KEY", prefix: "" } },
    ...{ timeoutMs: 60_000, startTimeoutMs: 30_000, perRollout: false, idempotent: false },
  });
  expect(web).toMatchObject({ url: "https://tools.example.org/mcp", perRollout: false });
});

test.each([
  ["{", "is not JSON"],
  ["[]", "expected record"],
  ['{"a": {}}', "a.command"],
  ['{"a": {"command": "x", "comand": "secret-canary"}}', "comand"],
  ['{"a": {"command": "x", "env": {"K": 7}}}', "a.env.K"],
  ['{"a": {"url": "ftp://user:secret-canary@x"}}', "a.url"],
  ['{"a": {"url": "http://x", "headers": {"a b": "secret-canary"}}}', "a.headers.a b"],
  ['{"a/b": {"command": "x"}}', "a/b"],
])("%s: %s", (text, named) => {
  let thrown: unknown;
  try {
    parseMcpServers(text, "/etc/mcp.json");
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(InputError);
  expect(String(thrown)).toContain(named);
  expect(String(thrown)).not.toContain("secret-canary");
});

test("one that runs in a sandbox can't be given secrets, which its agent could read", () => {
  const { boxed, plain, secret } = parse({
    boxed: { command: "x", sandbox: true, env: { A: "1" } },
    plain: { command: "x", env: { KEY: { env: "KEY" } } },
    secret: { command: "x", sandbox: true, env: { KEY: { env: "KEY" } } },
  });
  expect(secret && mcpRefusal(secret)).toContain("KEY");
  for (const server of [boxed, plain]) expect(server && mcpRefusal(server)).toBeNull();
});
