import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseServerSettings } from "./settings.ts";
import { loadTokens, Tokens } from "./tokens.ts";

const own = ["--token-file", "tokens", "--state-folder", "state"];

describe("flags", () => {
  it("have defaults that listen on this machine only", () => {
    expect(parseServerSettings(own)).toMatchObject({ port: 4480, host: "127.0.0.1", tls: null, lostAfterMs: 30_000 });
  });

  it.each([
    ["another address without TLS", ["--host", "0.0.0.0"], /--tls-cert/],
    ["half of TLS", ["--tls-cert", "x"], /belong together/],
    ["an unknown flag", ["--hots", "x"], /--hots/],
    ["a port that is none", ["--port", "70000"], /--port/],
  ])("refuse %s", (_what, flags, why) => {
    expect(() => parseServerSettings([...own, ...flags])).toThrow(InputError);
    expect(() => parseServerSettings([...own, ...flags])).toThrow(why);
  });

  it("take another address with TLS, or at the operator's own risk", () => {
    const tls = ["--tls-cert", "c", "--tls-key", "k"];
    expect(parseServerSettings([...own, "--host", "0.0.0.0", ...tls]).tls).toEqual({ certFile: "c", keyFile: "k" });
    expect(parseServerSettings([...own, "--host", "0.0.0.0", "--insecure"]).host).toBe("0.0.0.0");
  });
});

describe("tokens", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "rolldeck-tokens-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("are made once, for their owner alone", async () => {
    const file = path.join(folder, "deep/tokens");
    expect(loadTokens(file).made).toBe(true);
    const text = await readFile(file, "utf8");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const again = loadTokens(file);
    expect([again.made, await readFile(file, "utf8")]).toEqual([false, text]);
    for (const line of text.trim().split("\n")) {
      const [kind, token] = line.split(" ");
      expect(again.tokens.kindOf(`Bearer ${token}`)).toBe(kind);
      expect(again.tokens.kindOf(`Bearer ${token}x`)).toBeNull();
    }
    for (const header of [undefined, "", "Bearer ", "Basic abc"]) expect(again.tokens.kindOf(header)).toBeNull();
    await chmod(file, 0o640);
    expect(() => loadTokens(file)).toThrow(/can be read by others/);
  });

  it("name the line that is wrong and not what is on it", async () => {
    const bad = "client 0123456789abcdef0\nhost short-secret\n";
    await writeFile(path.join(folder, "tokens"), bad, { mode: 0o600 });
    const parse = () => Tokens.parse(bad, "tokens");
    expect(parse).toThrow(/line 2/);
    expect(parse).not.toThrow(/short-secret/);
    expect(() => Tokens.parse("client 0123456789abcdef0\n", "tokens")).toThrow(/no host token/);
  });
});
