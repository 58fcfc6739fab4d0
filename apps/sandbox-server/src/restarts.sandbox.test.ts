/** What a real sandbox server, its hosts and its clients each do when another of them dies. */
import { fileURLToPath } from "node:url";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { clientName } from "@rolldeck/sandbox/remote/remote-runtime";
import { describe, expect, it } from "vitest";
import { ailment, newId, ProcessHosts, sh, smallSpec } from "../testing/process-hosts.ts";
import { Program } from "../testing/remote-stack.ts";
import { waitUntil } from "../testing/wait-until.ts";

const { signal } = new AbortController();

describe.skipIf(ailment !== null)("remote sandboxes", () => {
  const scene = ProcessHosts.ofSuite();

  it("stay when their host's process is killed, and are used again when it is back", async () => {
    const sandbox = await scene.client.open(smallSpec(), signal);
    await sh(sandbox, "echo kept > note");
    const name = await scene.holderOf(sandbox.id);
    const running = sandbox.exec({ command: ["sleep", "600"], timeoutMs: 600_000 }, signal);
    const failed = expect(running).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await scene.hosts.get(name)?.kill("SIGKILL");
    await failed;
    await expect(scene.client.renew([sandbox.id], 60_000, signal)).rejects.toMatchObject({ code: "unavailable" });
    await scene.startHost(name);
    await waitUntil(async () => (await scene.hostOf(name))?.open === 1);
    expect(await sh(sandbox, "cat note")).toBe("kept");
    expect([...(await scene.client.renew([sandbox.id], 60_000, signal))]).toEqual([sandbox.id]);
    await scene.client.close(sandbox.id, signal);
  });

  it("are not disturbed by a second process that is started as their host, which is told so and ends", async () => {
    const sandbox = await scene.client.open(smallSpec(), signal);
    const name = await scene.holderOf(sandbox.id);
    const running = sh(sandbox, "sleep 8; echo done");
    const second = scene.stack.spawnHost(name, { runtime: "process", args: ["--memory-mb", "100000"] });
    expect(await second.exited).not.toBe(0);
    expect(second.said).toContain(`host ${name} is here already`);
    expect(await running).toBe("done");
    await scene.client.close(sandbox.id, signal);
  });

  it("are gone when their host stays away, and closed on it when it comes back", async () => {
    await scene.restartServer("--max-ready", "0", "--lost-after", "2");
    const [lost, closed] = [await scene.client.open(smallSpec(), signal), await scene.client.open(smallSpec(), signal)];
    const name = await scene.holderOf(lost.id);
    const others = [...scene.hosts.keys()].filter((other) => other !== name);
    // On the other one, to be sure that only those of the lost host go.
    const other = await scene.holderOf(closed.id);
    expect(others).toContain(other);
    await scene.hosts.get(name)?.kill("SIGKILL");
    await waitUntil(async () => (await scene.hostOf(name))?.state === "lost");
    await expect(scene.client.attach(lost.id, signal)).rejects.toMatchObject({ code: "gone" });
    await expect(sh(lost, "true")).rejects.toMatchObject({ code: "gone" });
    expect(await sh(closed, "echo here")).toBe("here");
    await scene.startHost(name);
    await waitUntil(async () => (await scene.heldOn(name)) === 0);
    expect((await scene.listed()).map(({ id }) => id)).toEqual([closed.id]);
    // Its host is away when it is closed: it ends when the host is back.
    await scene.hosts.get(other)?.kill("SIGKILL");
    await waitUntil(async () => (await scene.hostOf(other))?.state !== "here");
    await scene.client.close(closed.id, signal);
    await expect(scene.client.attach(closed.id, signal)).rejects.toMatchObject({ code: "gone" });
    await scene.startHost(other);
    await waitUntil(async () => (await scene.heldOn(other)) === 0);
    await scene.restartServer("--max-ready", "0");
  });

  it("stay when the server is killed; hosts and clients find it again", async () => {
    const sandbox = await scene.client.open(smallSpec(), signal);
    await sh(sandbox, "echo kept > note");
    const running = sandbox.exec({ command: ["sleep", "600"], timeoutMs: 600_000 }, signal);
    const failed = expect(running).rejects.toMatchObject({ code: "unavailable" });
    await scene.stack.server?.kill("SIGKILL");
    await failed;
    await scene.stack.startServer();
    // Whether it is there is not known until its host is: nobody is told that it is gone.
    await waitUntil(async () => {
      try {
        return (await scene.client.attach(sandbox.id, signal)).id === sandbox.id;
      } catch (error) {
        expect(error).toMatchObject({ code: "unavailable" });
        return false;
      }
    });
    expect(await sh(sandbox, "cat note; pgrep -c sleep || true")).toBe("kept\n0");
    expect((await scene.listed()).map(({ labels }) => labels)).toEqual([{ run: "r1", purpose: "test" }]);
    await scene.client.close(sandbox.id, signal);
    await waitUntil(async () => (await scene.client.status(signal)).hosts.every(({ state }) => state === "here"));
  });

  it("are not said to be gone, nor ended for another client, before their host is back", async () => {
    const [kept, ended] = [await scene.client.open(smallSpec(), signal), await scene.client.open(smallSpec(), signal)];
    const stranger = scene.stack.client("another");
    for (const host of scene.hosts.values()) await host.kill("SIGKILL");
    await scene.stack.server?.kill("SIGKILL");
    await scene.stack.startServer();
    const notKnown = { code: "unavailable", retryable: true };
    // Nobody may take the part that is known for all there is.
    await expect(scene.client.list(signal)).rejects.toMatchObject(notKnown);
    expect(JSON.parse(await scene.get("/v1/sandboxes", "client"))).toEqual({ sandboxes: [], complete: false });
    const never = newId();
    for (const id of [kept.id, never]) await expect(scene.client.attach(id, signal)).rejects.toMatchObject(notKnown);
    await expect(scene.client.renew([kept.id], 60_000, signal)).rejects.toMatchObject(notKnown);
    // Whose it is only its host can tell: each closing counts for the caller's own, whoever comes last.
    await scene.client.close(ended.id, signal);
    for (const id of [kept.id, ended.id]) await stranger.close(id, signal);
    await expect(scene.client.attach(ended.id, signal)).rejects.toMatchObject({ code: "gone" });
    await scene.startHost("alpha");
    await expect(scene.client.list(signal)).rejects.toMatchObject(notKnown);
    await scene.startHost("beta");
    expect((await scene.client.list(signal)).map(({ id }) => id)).toEqual([kept.id]);
    expect(await sh(kept, "echo here")).toBe("here");
    await waitUntil(async () => {
      const held = await Promise.all([...scene.hosts.keys()].map((name) => scene.heldOn(name)));
      return held.reduce((sum, count) => sum + count, 0) === 1;
    });
    // All that were there are back: it is not waited for more.
    await expect(scene.client.attach(never, signal)).rejects.toMatchObject({ code: "gone" });
  });

  it("of a client that is killed end with their leases, and what they ran at once", async () => {
    // Long enough that a busy machine sees the command end before the lease does.
    const { mounts: _mounts, ...abandoned } = smallSpec({ leaseMs: 40_000 });
    const program = new Program(
      process.execPath,
      [
        fileURLToPath(new URL("../testing/client-program.mjs", import.meta.url)),
        `${scene.stack.url.replace("http", "ws")}/v1/client`,
        await scene.stack.token("client"),
        clientName("test"),
        JSON.stringify(abandoned),
        JSON.stringify(["sleep", "600"]),
      ],
      {},
    );
    await program.heard(/running/);
    const sandbox = await scene.client.attach(abandoned.id, signal);
    await waitUntil(async () => (await sh(sandbox, "pgrep -c sleep || true")) === "1");
    await program.kill("SIGKILL");
    // A look may be ended together with what the client ran; the next one tells.
    const left = () => sh(sandbox, "pgrep -c sleep || true").catch(() => null);
    await waitUntil(async () => (await left()) === "0");
    const gone = (error: unknown): boolean => error instanceof BoundaryError && error.code === "gone";
    await waitUntil(() => scene.client.attach(abandoned.id, signal).then(() => false, gone));
    await waitUntil(async () => (await scene.client.status(signal)).sandboxes === 0);
  });

  it("open nowhere on a host that drains, also after the server was started anew", async () => {
    const before = await scene.client.open(smallSpec(), signal);
    const drained = await scene.holderOf(before.id);
    await scene.client.drain(drained, true, signal);
    const opened = await Promise.all(Array.from({ length: 3 }, () => scene.client.open(smallSpec(), signal)));
    expect((await scene.hostOf(drained))?.open).toBe(1);
    expect(await sh(before, "echo still")).toBe("still");
    await scene.stack.server?.kill("SIGTERM");
    await scene.stack.startServer();
    await waitUntil(async () => (await scene.client.status(signal)).sandboxes === 4);
    expect((await scene.hostOf(drained))?.draining).toBe(true);
    await scene.client.drain(drained, false, signal);
    const after = await scene.client.open(smallSpec(), signal);
    expect(await scene.holderOf(after.id)).toBe(drained);
    for (const { id } of [before, after, ...opened]) await scene.client.close(id, signal);
    await expect(scene.client.drain("nowhere", true, signal)).rejects.toMatchObject({ code: "refused" });
  });
});
