import { gunzipSync } from "node:zlib";
import { type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { describe, expect, test } from "vitest";
import { restoreArtifacts, takeArtifacts } from "./artifacts.ts";
import { readTar, type TarEntry, writeTar } from "./checked-tar.ts";

const shape = { mode: 0o644, mtimeMs: 0, content: new Uint8Array(), target: "" };
const file = (name: string): TarEntry => ({ ...shape, name, kind: "file" });
const link = (name: string, target: string): TarEntry => ({ ...shape, name, kind: "link", target });

/** Names of what is taken of /app when its archive holds these, and how many are told to be left out. */
async function taken(entries: readonly TarEntry[], exclude: readonly string[]) {
  const getArchive: Sandbox["getArchive"] = (path) => writeTar(path === "/app" ? entries : []);
  const sandbox = { workdir: "/", getArchive } as Partial<Sandbox> as Sandbox;
  const wanted = { prefix: "", artifacts: [{ source: "/app", exclude }], failedHooks: [] };
  const evidence = await takeArtifacts(wanted, sandbox, new AbortController().signal);
  const packed = evidence.find(({ name }) => name === "artifact-2.tar.gz")?.content ?? new Uint8Array();
  const found = await readTar(gunzipSync(packed), { maxBytes: 1000, maxEntries: 100 }, () => {});
  const manifest = JSON.parse(Buffer.from(evidence.at(-1)?.content ?? "").toString());
  return [found.map(({ name }) => name), manifest.artifacts[1].leftOut.length];
}

describe("an artifact", () => {
  test.each([
    ["../logs/verifier/reward.json", false],
    ["..", false],
    ["deep/up/../../tests", false],
    ["./../tests", false],
    ["deep/x", true],
    ["../app/deep", true],
    ["../app", true],
    ["./deep", true],
  ])("a link to %s comes through: %s", async (target, through) => {
    const names = ["app/deep/x", ...(through ? ["app/l"] : [])];
    expect(await taken([file("app/deep/x"), link("app/l", target)], [])).toEqual([names, through ? 0 : 1]);
  });

  test.each([
    ["*.log", ["app/a/b.txt", "app/logs/c"]],
    ["logs", ["app/a.log", "app/a/b.txt"]],
    ["a/", ["app/a.log", "app/logs/c"]],
    ["a/*.txt", ["app/a.log", "app/logs/c"]],
    ["og", ["app/a.log", "app/a/b.txt", "app/logs/c"]],
    ["?.log", ["app/a/b.txt", "app/logs/c"]],
    ["app", []],
  ])("without %s", async (pattern, left) => {
    expect(await taken([file("app/a.log"), file("app/a/b.txt"), file("app/logs/c")], [pattern])).toEqual([left, 0]);
  });

  test("a file below very many folders is left out and told", async () => {
    expect(await taken([file("app/a"), file(`app/${"a/".repeat(20_000)}b`)], ["*.o"])).toEqual([["app/a"], 1]);
  });
});

test("one that is too large is told, never cut, and nothing is graded without it (fault 36)", async () => {
  const getArchive: Sandbox["getArchive"] = (path) =>
    path === "/app"
      ? Promise.reject(new SandboxFileError("too_large", path, `${path} is larger than 67108864 bytes`))
      : writeTar([]);
  const sandbox = { workdir: "/", getArchive } as Partial<Sandbox> as Sandbox;
  const wanted = { prefix: "", artifacts: [{ source: "/app", exclude: [] }], failedHooks: [] };
  const { signal } = new AbortController();
  const kept = new Map((await takeArtifacts(wanted, sandbox, signal)).map(({ name, content }) => [name, content]));
  const collected = async (name: string) => kept.get(name) ?? null;
  const putArchive: Sandbox["putArchive"] = async () => undefined;
  const verifier = { workdir: "/", putArchive } as Partial<Sandbox> as Sandbox;
  await expect(restoreArtifacts("", collected, verifier, signal)).rejects.toMatchObject({
    boundary: "verifier",
    code: "not_collected",
    message: "/app was too large to be carried over",
  });
});
