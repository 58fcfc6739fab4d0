/** Remote sandboxes where the hosts' are containers: the conformance suite, and images that are built from what a client sends. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { describeConformance } from "@rolldeck/sandbox/testing/conformance";
import { testDocker, testImage } from "@rolldeck/sandbox/testing/test-docker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeRuntime, tokenVariable, urlVariable } from "../testing/remote-runtime.ts";
import { RemoteStack } from "../testing/remote-stack.ts";

const docker = testDocker();
const { signal } = new AbortController();

describe.skipIf(docker === null)("with a Docker daemon and two hosts", () => {
  let stack: RemoteStack;
  const environment: Record<string, string> = {};

  beforeAll(async () => {
    stack = await RemoteStack.make();
    await stack.startServer([
      "--starts-per-second",
      "100",
      "--starts-per-host",
      "50",
      "--max-ready",
      "2",
      "--lost-after",
      "5",
    ]);
    environment[urlVariable] = stack.url;
    environment[tokenVariable] = await stack.token("client");
    Object.assign(process.env, environment);
    const choice = { runtime: "docker", dockerSocket: docker?.socket, args: ["--memory-mb", "100000"] } as const;
    await Promise.all(["one", "two"].map((name) => stack.startHost(name, choice)));
  });
  afterAll(() => stack?.stop());

  describeConformance("remote", makeRuntime, {
    image: { kind: "name", name: testImage },
    folder: "/srv",
    smallFolder: "/tmp",
    otherUser: "nobody",
    told: {},
    holder: { module: fileURLToPath(new URL("../testing/remote-runtime.ts", import.meta.url)), environment },
    many: 64,
  });

  describe("images", () => {
    let folder: string;
    let runtime: SandboxRuntime;
    beforeAll(async () => {
      folder = await mkdtemp(path.join(tmpdir(), "rolldeck-build-"));
      runtime = makeRuntime("images");
    });
    afterAll(async () => {
      for (const { id } of await runtime.list(signal)) await runtime.close(id, signal);
      await runtime.disconnect();
      await rm(folder, { recursive: true, force: true });
    });
    const idOf = (n: number): string => `sbx_${`${Date.now().toString(36)}${n}`.padStart(20, "0")}`;
    const spec = (n: number, image: Parameters<NonNullable<SandboxRuntime["prepare"]>>[0]) => ({
      ...({
        id: idOf(n),
        image,
        network: { mode: "none" },
        workdir: null,
        environment: {},
        services: [],
        labels: {},
      } as const),
      ...{ resources: { cpus: null, memoryMb: 128, pids: null, diskMb: null }, mounts: [] },
      ...{ leaseMs: 120_000, maxLifeMs: 600_000 },
    });

    it("are built on a host from a folder of the client's, and kept by it as a snapshot", async () => {
      await mkdir(path.join(folder, "sub"));
      await writeFile(path.join(folder, "Dockerfile"), `FROM ${testImage}\nCOPY sub/word /srv/word\n`);
      await writeFile(path.join(folder, "sub/word"), "built");
      const image = { kind: "build", context: folder, dockerfile: "Dockerfile", timeoutMs: 120_000 } as const;
      const said: string[] = [];
      await runtime.prepare?.(image, (message) => said.push(message), signal);
      const sandbox = await runtime.open(spec(1, image), signal);
      const read = async (from: typeof sandbox, file: string) =>
        Buffer.from(await from.readFile(file, { maxBytes: 100 }, signal)).toString();
      expect(await read(sandbox, "/srv/word")).toBe("built");
      await sandbox.writeFile("/srv/more", Buffer.from("kept"), {}, signal);
      const name = (await sandbox.snapshot?.(signal)) ?? "";
      expect(name).toMatch(/^rolldeck-host\//);
      const again = await runtime.open(spec(2, { kind: "name", name }), signal);
      expect(await read(again, "/srv/more")).toBe("kept");
    });
  });
});
