/** Images in a real daemon: built of a folder, kept of a sandbox, made of next to nothing, and removed when nobody uses them. */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type ImageSource,
  noResources,
  type Sandbox,
  type SandboxSpec,
  sandboxId,
} from "@rolldeck/contracts/ports/sandbox";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { smallImages } from "../../testing/small-image.ts";
import { testDocker } from "../../testing/test-docker.ts";
import { parseSandboxSettings } from "../settings.ts";
import { DockerRuntime } from "./docker-runtime.ts";
import { KeptImages } from "./kept-images.ts";

const found = testDocker();
const socket = found?.socket ?? "";
const docker = new Docker({ socketPath: socket });
const signal = new AbortController().signal;
const small = smallImages();
const base = small[0]?.name ?? "";
const deployment = `images-${randomBytes(4).toString("hex")}`;
const made: DockerRuntime[] = [];
const runtimeOf = (name: string): DockerRuntime => {
  const runtime = new DockerRuntime({
    settings: parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: socket }, "/"),
    deployment: name,
    stateFolder: "/nonexistent",
    onTrouble: (message, error) => console.error(message, error),
  });
  made.push(runtime);
  return runtime;
};
const spec = (image: ImageSource, change: Partial<SandboxSpec> = {}): SandboxSpec => ({
  id: sandboxId(randomBytes(20)),
  image,
  resources: { ...noResources, memoryMb: 64 },
  network: { mode: "none" },
  workdir: "/srv",
  environment: {},
  services: [],
  labels: { run: "run-1" },
  mounts: [],
  leaseMs: 300_000,
  maxLifeMs: 600_000,
  ...change,
});
const said = async (sandbox: Sandbox, script: string): Promise<string> => {
  const { stdout, stderr } = await sandbox.exec({ command: ["sh", "-c", script], timeoutMs: 30_000 }, signal);
  return Buffer.concat([stdout.head, stderr.head]).toString().trimEnd();
};
/** Everything that is not used is past its lease. */
const keeper = (name = deployment, keepMs = 0): KeptImages =>
  new KeptImages({ docker, deployment: name, keepMs, now: () => Date.now() + 1_000 });
const names = async (name = deployment): Promise<string[]> => {
  const images = await docker.listImages({ filters: { label: [`rolldeck.deployment=${name}`] } });
  return images.flatMap(({ RepoTags }) => RepoTags ?? []).sort();
};

describe.skipIf(found === null)("images of sandboxes", () => {
  let folder: string;
  let runtime: DockerRuntime;
  const build = (context = folder): ImageSource => ({
    ...{ kind: "build", context, dockerfile: "Dockerfile", timeoutMs: 60_000 },
  });
  const write = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
  };

  beforeAll(async () => {
    for (const { make } of small) await make(socket);
    folder = await mkdtemp(join(tmpdir(), "rolldeck-context-"));
    runtime = runtimeOf(deployment);
    // What one test removes is what the next would use: the sweep runs where a test asks for it.
    await write({ Dockerfile: `FROM ${base}\nCOPY . /srv/\nRUN echo built >/srv/mark\nWORKDIR /srv\n` });
  });
  afterAll(async () => {
    for (const one of made) {
      for (const { id } of await one.list(signal)) await one.close(id, signal);
      await one.disconnect();
    }
    await keeper().sweep();
    await rm(folder, { recursive: true });
  });

  test("a folder is built once, without what its .dockerignore leaves out", async () => {
    await write({
      ".dockerignore": "# not sent\n*.log\n!kept.log\nsecret\n**/cache/*.tmp\nDockerfile\n",
      ...{ "a.txt": "a", "a.log": "x", "kept.log": "kept", "secret/key": "x", "deep/cache/b.tmp": "x" },
      ...{ "deep/cache/b.txt": "b", "deep/a.log": "deep" },
    });
    await symlink("a.txt", join(folder, "link"));
    await chmod(join(folder, "a.txt"), 0o750);
    const told: string[] = [];
    const hear = (message: string): void => void told.push(message);
    await Promise.all([1, 2, 3].map(() => runtime.prepare(build(), hear, signal)));
    expect(told).toContainEqual(expect.stringContaining(`building ${(await names())[0]} from ${folder}`));
    told.length = 0;
    await runtimeOf(deployment).prepare(build(), hear, signal);
    expect(told).toEqual([]);
    // One that was built twice would have left the other without a name.
    const filters = { label: [`rolldeck.deployment=${deployment}`] };
    expect(await docker.listImages({ filters })).toHaveLength(1);
    const sandbox = await runtime.open(spec(build(), { workdir: null }), signal);
    expect(sandbox.workdir).toBe("/srv");
    const listing = await said(sandbox, "for f in * */* */*/*; do [ -f $f ] && echo $f; done; cat mark link");
    expect(listing.split("\n")).toEqual([
      ...["a.txt", "kept.log", "link", "mark", "deep/a.log", "deep/cache/b.txt", "built", "a"],
    ]);
    expect(await said(sandbox, "stat -c %a a.txt; ls -d .dockerignore")).toBe("750\n.dockerignore");
    await runtime.close(sandbox.id, signal);
  });

  test("another content is another image; one that does not build says why", async () => {
    const before = await names();
    await write({ "a.txt": "changed" });
    await runtime.prepare(build(), () => undefined, signal);
    expect(await names()).toHaveLength(before.length + 1);
    const broken = await mkdtemp(join(tmpdir(), "rolldeck-context-"));
    await writeFile(join(broken, "Dockerfile"), `FROM ${base}\nRUN echo so far && nosuchprogram\n`);
    await expect(runtime.prepare(build(broken), () => undefined, signal)).rejects.toMatchObject({
      code: "no_image",
      retryable: false,
      message: expect.stringMatching(new RegExp(`${broken}[^]*so far[^]*nosuchprogram`)),
    });
    await writeFile(join(broken, "Dockerfile"), `FROM ${base}\nRUN sleep 60\n`);
    const slow: ImageSource = { kind: "build", context: broken, dockerfile: "Dockerfile", timeoutMs: 1_500 };
    await expect(runtime.open(spec(slow), signal)).rejects.toMatchObject({
      code: "no_image",
      message: expect.stringContaining("not built in 1.5 s"),
    });
    await expect(runtime.open(spec({ ...slow, dockerfile: "../x" }), signal)).rejects.toMatchObject({
      code: "no_image",
    });
    await rm(broken, { recursive: true });
  });

  test("a sandbox is kept as an image: its files, its user, not its processes and not its keeper", async () => {
    const first = await runtime.open(
      spec({ kind: "name", name: base }, { user: "1234:1234", workdir: "/tmp" }),
      signal,
    );
    const root = await runtime.open(spec({ kind: "name", name: base }), signal);
    await said(root, "echo kept >/srv/file; sleep 300 >/dev/null 2>&1 &");
    const image = { kind: "name", name: (await root.snapshot?.(signal)) ?? "" } as const;
    await said(root, "echo later >/srv/file");
    const again = await runtime.open(spec(image), signal);
    expect(await said(again, "cat /srv/file; id -u")).toBe("kept\n0");
    const sleeping =
      "for p in /proc/[0-9]*; do cat $p/cmdline; echo; done 2>/dev/null | tr '\\0' ' ' | grep -c '^sleep 300 '";
    expect([await said(root, sleeping), await said(again, sleeping)]).toEqual(["1", "0"]);
    const other = { kind: "name", name: (await first.snapshot?.(signal)) ?? "" } as const;
    const third = await runtime.open(spec(other), signal);
    expect(await said(third, "id -u; id -g")).toBe("1234\n1234");
    for (const { id } of [first, root, again, third]) await runtime.close(id, signal);
  });

  test("what nobody uses is removed, and nothing else", async () => {
    await keeper().sweep();
    const inUse = await runtime.open(spec(build()), signal);
    const source = await runtime.open(spec({ kind: "name", name: base }), signal);
    const ofLiving = (await source.snapshot?.(signal)) ?? "";
    const closed = await runtime.open(spec({ kind: "name", name: base }), signal);
    const ofClosed = (await closed.snapshot?.(signal)) ?? "";
    await runtime.close(closed.id, signal);
    const [built = ""] = (await names()).filter((name) => name.startsWith("rolldeck-build:"));
    const foreign = `${deployment}-people:1`;
    await docker.getImage(ofClosed).tag({ repo: `${deployment}-people`, tag: "1" });

    expect(await keeper("another-deployment").sweep()).toEqual([]);
    expect(await keeper(deployment, 3_600_000).sweep()).toEqual([]);
    expect(await keeper().sweep()).toEqual([ofClosed]);
    expect(await names()).toEqual([foreign, built, ofLiving].sort());
    for (const { id } of [inUse, source]) await runtime.close(id, signal);
    await docker.getImage(foreign).remove();
    expect([...(await keeper().sweep())].sort()).toEqual([built, ofLiving].sort());
    expect(await names()).toEqual([]);
    // It is built again when it is wanted again.
    const next = await runtime.open(spec(build()), signal);
    expect(await said(next, "cat mark")).toBe("built");
    await runtime.close(next.id, signal);
    await expect(runtime.open(spec({ kind: "name", name: ofClosed }), signal)).rejects.toMatchObject({
      code: "no_image",
      message: expect.stringContaining(ofClosed),
    });
  });

  test("each use renews an image's lease, for every process", async () => {
    await runtime.prepare(build(), () => undefined, signal);
    const [name = ""] = await names();
    const lastMs = async () => Date.parse(String(Object(await docker.getImage(name).inspect()).Metadata?.LastTagTime));
    const before = await lastMs();
    await runtimeOf("a-third-deployment").prepare(build(), () => undefined, signal);
    expect(await lastMs()).toBeGreaterThan(before);
  });

  test.each(small)("an image with $shell and no bash is enough", async ({ name, shell }) => {
    const sandbox = await runtime.open(spec({ kind: "name", name }, { leaseMs: 300_000 }), signal);
    expect(await said(sandbox, "command -v bash || echo none; echo on; cat missing")).toMatch(/^none\non\n.*missing/);
    const late = await sandbox.exec({ command: ["sh", "-c", "sleep 300 & sleep 300"], timeoutMs: 500 }, signal);
    expect(late.timedOut).toBe(true);
    await sandbox.killAll(signal);
    await sandbox.writeFile("/srv/a/b", Buffer.from("bytes\0"), { mode: 0o751 }, signal);
    expect(Buffer.from(await sandbox.readFile("/srv/a/b", { maxBytes: 10 }, signal)).toString()).toBe("bytes\0");
    expect(await said(sandbox, "stat -c %a /srv/a/b")).toBe("751");
    const tar = await sandbox.getArchive("/srv/a", { maxBytes: 100_000 }, signal);
    await sandbox.putArchive("/srv/z", tar, {}, signal);
    expect(await said(sandbox, "wc -c </srv/z/a/b")).toBe("6");
    await expect(sandbox.readFile("/srv/none", { maxBytes: 10 }, signal)).rejects.toMatchObject({ code: "not_found" });
    expect([...(await runtime.renew([sandbox.id], 300_000, signal))]).toEqual([sandbox.id]);
    await runtime.close(sandbox.id, signal);
    if (shell !== "busybox") return;
    // Its shell can wait: the lease holds without bash.
    const short = await runtime.open(spec({ kind: "name", name }, { leaseMs: 3_000 }), signal);
    await expect
      .poll(async () => (await runtime.list(signal)).map(({ id }) => id), { timeout: 30_000 })
      .not.toContain(short.id);
  });

  test("an image without any shell is refused by name", async () => {
    const empty = await mkdtemp(join(tmpdir(), "rolldeck-context-"));
    await writeFile(join(empty, "Dockerfile"), "FROM scratch\nCOPY Dockerfile /\n");
    await expect(runtime.open(spec(build(empty), { workdir: "/" }), signal)).rejects.toMatchObject({
      code: "refused",
      message: expect.stringContaining("no /bin/sh"),
    });
    await rm(empty, { recursive: true });
  });
});
