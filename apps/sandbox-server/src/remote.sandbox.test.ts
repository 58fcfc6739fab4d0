/** The whole way: a real sandbox server, real hosts with `process` sandboxes, real clients. */
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { noResources, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";
import { inPieces, makeArchive } from "@rolldeck/sandbox/testing/make-archive";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ailment, ProcessHosts, sh, smallSpec, text } from "../testing/process-hosts.ts";
import { waitUntil } from "../testing/wait-until.ts";

const { signal } = new AbortController();

describe.skipIf(ailment !== null)("remote sandboxes", () => {
  const scene = ProcessHosts.ofSuite();

  it("are opened where there is least, and act as their host's do", async () => {
    const opened = await Promise.all(Array.from({ length: 4 }, () => scene.client.open(smallSpec(), signal)));
    const { hosts: seen } = await scene.client.status(signal);
    expect(seen.map(({ name, open }) => [name, open]).sort()).toEqual([
      ["alpha", 2],
      ["beta", 2],
    ]);
    const [sandbox] = opened;
    if (sandbox === undefined) throw new Error("none was opened");
    const bytes = Buffer.alloc(3_000_000, 7);
    await sandbox.writeFile("/home/agent/big", bytes, {}, signal);
    expect(Buffer.compare(await sandbox.readFile("/home/agent/big", { maxBytes: 4_000_000 }, signal), bytes)).toBe(0);
    await expect(sandbox.readFile("/home/agent/none", { maxBytes: 1 }, signal)).rejects.toMatchObject({
      name: "SandboxFileError",
      code: "not_found",
    });
    const capped = await sandbox.exec(
      {
        command: ["bash", "-c", "cat; head -c 5000000 /dev/zero | tr '\\0' x"],
        stdin: Buffer.from("in"),
        timeoutMs: 20_000,
        maxOutputBytes: 1000,
      },
      signal,
    );
    expect(capped.stdout).toMatchObject({ bytes: 5_000_002, gapBytes: 5_000_002 - 1000 });
    expect(text(capped.stdout.head).startsWith("inxx")).toBe(true);
    const cat = await sandbox.spawn({ command: ["cat"] }, signal);
    await cat.write(Buffer.from("ping"));
    await cat.endStdin();
    const parts: Uint8Array[] = [];
    for await (const chunk of cat.stdout) parts.push(chunk);
    expect([text(Buffer.concat(parts)), await cat.wait()]).toEqual(["ping", { exitCode: 0 }]);
    expect((await scene.client.list(signal)).map(({ id }) => id).sort()).toEqual(opened.map(({ id }) => id).sort());
    expect(await scene.stack.client("another").list(signal)).toEqual([]);
    for (const { id } of opened) await scene.client.close(id, signal);
    await expect(sandbox.exec({ command: ["true"], timeoutMs: 1000 }, signal)).rejects.toMatchObject({ code: "gone" });
    await scene.client.close(sandbox.id, signal);
  });

  it("take an archive whole or not at all, also one that comes in pieces", async () => {
    const sandbox = await scene.client.open(smallSpec(), signal);
    const fine = await makeArchive(
      { name: "fine", body: "x".repeat(200_000) },
      { name: "l", linkname: "fine", type: "symlink" },
    );
    await sandbox.putArchive("/home/agent/put", inPieces(fine), {}, signal);
    expect(await sh(sandbox, "cd put && wc -c < fine && readlink l")).toBe("200000\nfine");
    const bad = [
      await makeArchive({ name: "fine", body: "x".repeat(200_000) }, { name: "../out", body: "x" }),
      fine.subarray(0, 100_000),
    ];
    for (const tar of bad) {
      const putting = sandbox.putArchive("/home/agent/trap", inPieces(tar), {}, signal);
      await expect(putting).rejects.toMatchObject({ name: "SandboxFileError", code: "bad_archive" });
    }
    const breaking = async function* () {
      yield fine.subarray(0, 100_000);
      throw new Error("the source broke");
    };
    await expect(sandbox.putArchive("/home/agent/trap", breaking(), {}, signal)).rejects.toThrow("the source broke");
    expect(await sh(sandbox, "ls -d trap out 2>/dev/null; true")).toBe("");
    for (const name of scene.hosts.keys())
      expect(await readdir(`${scene.folder(name)}/archives`).catch(() => [])).toEqual([]);
  });

  it("that stand ready are taken by one each, and never dead", async () => {
    const { id: _id, labels: _labels, mounts: _mounts, leaseMs: _leaseMs, maxLifeMs, ...like } = smallSpec();
    const warm = async (): Promise<number> =>
      (await scene.client.status(signal)).hosts.reduce((sum, host) => sum + host.warm, 0);
    await scene.restartServer("--max-ready", "3");
    const wanted = { count: 3, maxLifeMs, forMs: 60_000 };
    await scene.client.expect(like, wanted, signal);
    await waitUntil(async () => (await warm()) === 3);
    expect(await scene.client.list(signal)).toEqual([]);
    const taken = await Promise.all(Array.from({ length: 3 }, () => scene.client.open(smallSpec(), signal)));
    await Promise.all(taken.map((sandbox, n) => sh(sandbox, `test ! -e mine && echo ${n} > mine`)));
    expect(await Promise.all(taken.map((sandbox) => sh(sandbox, "cat mine")))).toEqual(["0", "1", "2"]);
    expect(await openedBy("warm")).toBe(3);
    // Known by its new name after its host's process and the server are new, too.
    const [first] = taken;
    if (first === undefined) throw new Error("none");
    const name = await scene.holderOf(first.id);
    await scene.hosts.get(name)?.kill("SIGKILL");
    await scene.stack.server?.kill("SIGKILL");
    await scene.stack.startServer();
    await scene.startHost(name);
    await waitUntil(async () => (await scene.listed()).length === 3);
    expect(await sh(first, "cat mine")).toBe("0");
    expect((await scene.client.list(signal)).every(({ labels }) => labels.run === "r1")).toBe(true);
    for (const { id } of taken) await scene.client.close(id, signal);
    expect(await scene.client.list(signal)).toEqual([]);
    // Without any to stand ready, those that do are closed.
    await scene.restartServer("--max-ready", "0");
    for (const each of scene.hosts.keys()) await waitUntil(async () => (await scene.heldOn(each)) === 0);
  });

  it("are refused past the limits, and under names and labels that are not the client's", async () => {
    const sandbox = await scene.client.open(smallSpec(), signal);
    const refusals: readonly [Partial<SandboxSpec>, RegExp][] = [
      [{ id: sandbox.id }, /there is, or was/],
      [{ labels: { "remote-warm": "x" } }, /label remote-warm/],
      [{ mounts: [{ source: "/etc", target: "/x", readOnly: true }] }, /can't mount/],
      [{ resources: { ...noResources, memoryMb: 10_000_000 } }, /that much memory/],
      [{ image: { kind: "name", name: "debian" } }, /no host makes sandboxes from images/],
      [{ leaseMs: 1 }, /leaseMs/],
    ];
    for (const [changes, why] of refusals) {
      const opening = scene.client.open(smallSpec(changes), signal);
      await expect(opening).rejects.toMatchObject({ code: "refused", message: expect.stringMatching(why) });
    }
    const argument = "x".repeat(3_000_000);
    const running = sandbox.exec({ command: ["echo", argument], timeoutMs: 1000 }, signal);
    await expect(running).rejects.toMatchObject({ code: "refused" });
    await scene.client.close(sandbox.id, signal);
  });

  it("wait for nobody's: an opening that is given up leaves nothing", async () => {
    const stop = new AbortController();
    // Nowhere to open: it waits when it is given up.
    for (const name of scene.hosts.keys()) await scene.client.drain(name, true, signal);
    const opening = scene.client.open(smallSpec(), stop.signal);
    await waitUntil(async () => (await scene.client.status(signal)).queued === 1);
    stop.abort(new Error("given up"));
    await expect(opening).rejects.toThrow("given up");
    // The same when it is closed on another connection: its own may be dead, which nobody has noticed yet.
    const waiting = smallSpec();
    const ended = expect(scene.client.open(waiting, signal)).rejects.toMatchObject({ code: "gone" });
    await waitUntil(async () => (await scene.client.status(signal)).queued === 1);
    await scene.stack.client("another").close(waiting.id, signal);
    expect((await scene.client.status(signal)).queued).toBe(1);
    await scene.stack.client().close(waiting.id, signal);
    await ended;
    for (const name of scene.hosts.keys()) await scene.client.drain(name, false, signal);
    await waitUntil(async () => {
      const { sandboxes, queued } = await scene.client.status(signal);
      return sandboxes === 0 && queued === 0;
    });
    for (const name of scene.hosts.keys()) await waitUntil(async () => (await scene.heldOn(name)) === 0);
  });

  it("are metered, and counted for Prometheus", async () => {
    const sandbox = await scene.client.open(smallSpec({ labels: { run: "metered" } }), signal);
    await sh(sandbox, "sleep 1.1");
    await scene.client.close(sandbox.id, signal);
    const usage = (await scene.client.status(signal)).usage.find(({ run }) => run === "metered");
    expect(usage?.sandboxSeconds).toBeGreaterThan(1);
    expect(usage?.reservedMemoryMbSeconds).toBeCloseTo((usage?.sandboxSeconds ?? 0) * 128, 3);
    const metrics = await scene.get("/metrics", "client");
    expect(metrics).toMatch(/rolldeck_sandbox_calls_total\{method="exec"\} \d+/);
    expect(metrics).toMatch(/rolldeck_sandbox_queue_wait_seconds_count \d+/);
    expect(metrics).not.toContain(await scene.stack.token("client"));
  });

  it("are behind tokens of two kinds, of which neither does the other's", async () => {
    expect(JSON.parse(await scene.get("/healthz", null))).toEqual({ ok: true });
    expect(await scene.get("/v1/status", null)).toContain("a token is needed");
    expect(await scene.get("/v1/status", "host")).toContain("a client token is needed");
    const asHost = new RemoteRuntime({
      address: async () => ({ url: scene.stack.url, token: await scene.stack.token("host"), ca: null }),
      ...{ deployment: "x", onTrouble: () => undefined },
    });
    await expect(asHost.open(smallSpec(), signal)).rejects.toMatchObject({ code: "refused" });
    expect(await upgradeStatus("host", await scene.stack.token("client"))).toBe(403);
    expect(await upgradeStatus("host", "a-guess-of-some-length")).toBe(401);
    expect(await rawAnswer("GET // HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")).toMatch(
      / 404 /,
    );
    expect(await rawAnswer("GET // HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).toMatch(/ 401 /);
    const logs = scene.stack.server?.said ?? "";
    for (const kind of ["client", "host"] as const) expect(logs).not.toContain(await scene.stack.token(kind));
  });

  async function openedBy(how: "warm" | "cold"): Promise<number> {
    const lines = (await scene.get("/metrics", "client")).split("\n");
    const counts = lines.filter((line) => line.startsWith("rolldeck_sandbox_opened_total") && line.includes(how));
    return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  async function rawAnswer(request: string): Promise<string> {
    const socket = connect(scene.stack.port, "127.0.0.1");
    socket.end(request);
    let answer = "";
    for await (const chunk of socket) answer += String(chunk);
    return answer;
  }

  function upgradeStatus(path: string, token: string): Promise<number> {
    const socket = new WebSocket(`${scene.stack.url.replace("http", "ws")}/v1/${path}`, ["rolldeck-sandbox.1"], {
      headers: { authorization: `Bearer ${token}` },
    });
    return new Promise((resolve, reject) => {
      socket.on("error", () => undefined);
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
      socket.on("open", () => reject(new Error("it was let in")));
    });
  }
});
