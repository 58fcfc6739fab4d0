/** What a daemon's own trouble looks like from here: frozen, restarted and killed, with sandboxes alive. It is one of our own. */
import { randomBytes } from "node:crypto";
import { noResources, type Sandbox, type SandboxSpec, sandboxId } from "@rolldeck/contracts/ports/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnDockerDaemon, startDockerDaemon } from "../../testing/docker-daemon.ts";
import { smallImages } from "../../testing/small-image.ts";
import { testDocker } from "../../testing/test-docker.ts";
import { parseSandboxSettings } from "../settings.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const signal = new AbortController().signal;
const [image] = smallImages();
const unavailable = expect.objectContaining({ boundary: "sandbox", code: "unavailable", retryable: true });
const gone = expect.objectContaining({ boundary: "sandbox", code: "gone" });

const spec = (): SandboxSpec => ({
  id: sandboxId(randomBytes(20)),
  image: { kind: "name", name: image?.name ?? "" },
  resources: { ...noResources, memoryMb: 64 },
  network: { mode: "none" },
  workdir: "/srv",
  environment: {},
  services: [],
  labels: {},
  mounts: [],
  leaseMs: 300_000,
  maxLifeMs: 600_000,
});

// The suite's own daemon serves others, too: nothing is done to that.
const started = testDocker() === null ? { missing: "there is no Docker here" } : await startDockerDaemon();
if ("missing" in started) console.warn(`daemons in trouble are not tested: ${started.missing}`);

describe.skipIf("missing" in started)("a Docker daemon", () => {
  let daemon: OwnDockerDaemon;
  let runtime: DockerRuntime;
  const troubles: string[] = [];
  const exec = (sandbox: Sandbox, script: string, timeoutMs = 20_000) =>
    sandbox.exec({ command: ["sh", "-c", script], timeoutMs }, signal);

  beforeAll(async () => {
    if ("missing" in started) throw new Error(started.missing);
    daemon = started;
    await image?.make(daemon.socket);
    runtime = new DockerRuntime({
      settings: parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: daemon.socket }, "/"),
      deployment: "daemon-down",
      stateFolder: "/nonexistent",
      onTrouble: (message, error) => troubles.push(`${message}: ${String(error)}`),
    });
  });
  afterAll(async () => {
    await runtime?.disconnect();
    await daemon?.stop();
  });

  test("that is frozen holds nobody for ever, and is told as what it is", { timeout: 240_000 }, async () => {
    const sandbox = await runtime.open(spec(), signal);
    const running = exec(sandbox, "echo on; sleep 600", 2_000);
    const talk = await sandbox.spawn({ command: ["sh", "-c", "read -r line"] }, signal);
    await exec(sandbox, "true");
    daemon.freeze();
    try {
      const asked = {
        running,
        exec: exec(sandbox, "echo hello"),
        input: sandbox.exec({ command: ["cat"], stdin: new Uint8Array(9), timeoutMs: 5_000 }, signal),
        spawn: sandbox.spawn({ command: ["sh"] }, signal),
        killAll: sandbox.killAll(signal),
        readFile: sandbox.readFile("/bin/sh", { maxBytes: 10 }, signal),
        open: runtime.open(spec(), signal),
        attach: runtime.attach(sandbox.id, signal),
        list: runtime.list(signal),
        close: runtime.close(sandbox.id, signal),
        prepare: runtime.prepare({ kind: "name", name: "nowhere:1" }, () => undefined, signal),
      };
      const [renewed, ailment] = [runtime.renew([sandbox.id], 60_000, signal), runtime.ailment(signal)];
      const ended = await Promise.allSettled(Object.values(asked));
      const told = Object.keys(asked).map((name, at) => [name, ended[at]]);
      expect(Object.fromEntries(told)).toEqual(
        Object.fromEntries(Object.keys(asked).map((name) => [name, { status: "rejected", reason: unavailable }])),
      );
      expect(String(ended[1]?.status === "rejected" && ended[1].reason.message)).toContain("runtime does not answer");
      // Whether it is there is not known: it is not told as lost, and the trouble is.
      expect([...(await renewed)]).toEqual([sandbox.id]);
      expect(troubles.join("\n")).toContain(`the lease of sandbox ${sandbox.id} was not renewed`);
      expect(await ailment).toContain("does not answer");
    } finally {
      daemon.thaw();
    }
    await talk.close();
    // What it was asked while it was frozen it may do now: the sandbox was to be closed.
    await runtime.close(sandbox.id, signal);
    const next = await runtime.open(spec(), signal);
    expect((await exec(next, "exit 7")).exitCode).toBe(7);
    await runtime.close(next.id, signal);
    await expect.poll(async () => (await runtime.list(signal)).length, { timeout: 60_000 }).toBe(0);
  });

  test.each(["SIGTERM", "SIGKILL"] as const)("that ends by %s takes its sandboxes along, as lost", async (how) => {
    const sandbox = await runtime.open(spec(), signal);
    const running = exec(sandbox, "sleep 600", 300_000);
    const talk = await sandbox.spawn({ command: ["sh", "-c", "echo up; sleep 600"] }, signal);
    const waiting = talk.wait();
    for (const unheard of [running, waiting]) unheard.catch(() => undefined);
    for await (const _up of talk.stdout) break;
    await daemon.restart(how);
    // Never the end of a command: the daemon was away when it was asked, or knew the sandbox no more.
    for (const lost of [running, waiting]) {
      const error = await lost.then(
        (end: unknown) => end,
        (trouble: unknown) => trouble,
      );
      expect([unavailable, gone]).toContainEqual(error);
    }
    await expect(exec(sandbox, "true")).rejects.toEqual(gone);
    await expect(sandbox.spawn({ command: ["true"] }, signal)).rejects.toEqual(gone);
    await expect(runtime.attach(sandbox.id, signal)).rejects.toEqual(gone);
    expect([...(await runtime.renew([sandbox.id], 60_000, signal))]).toEqual([]);
    expect((await runtime.list(signal)).filter(({ state }) => state === "running")).toEqual([]);
    await runtime.close(sandbox.id, signal);
    const next = await runtime.open(spec(), signal);
    expect((await exec(next, "echo on")).exitCode).toBe(0);
    await runtime.close(next.id, signal);
  });
});
