/** The whole way: a real sandbox server, real hosts with `process` sandboxes, real clients; and what each does when another dies. */
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { noResources, type Sandbox, type SandboxFact, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { hostAilment } from "@rolldeck/sandbox/process/host-ailment";
import { clientName, RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";
import { inPieces, makeArchive } from "@rolldeck/sandbox/testing/make-archive";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Program, RemoteStack } from "../testing/remote-stack.ts";
import { waitUntil } from "../testing/wait-until.ts";

const ailment = await hostAilment();
if (ailment !== null) console.warn(`remote sandboxes are not tested on process hosts: ${ailment}`);

const { signal } = new AbortController();
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
const newId = (): string =>
  `sbx_${Array.from({ length: 20 }, () => alphabet.charAt(Math.floor(Math.random() * 36))).join("")}`;
const spec = (changes: Partial<SandboxSpec> = {}): SandboxSpec => ({
  ...{ id: newId(), labels: { run: "r1", purpose: "test" }, image: null, workdir: null, environment: {} },
  resources: { ...noResources, memoryMb: 128, pids: 64, diskMb: 16 },
  ...{ network: { mode: "none" }, services: [], mounts: [], leaseMs: 60_000, maxLifeMs: 600_000 },
  ...changes,
});
async function sh(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, exitCode, stderr } = await sandbox.exec(
    { command: ["bash", "-c", script], timeoutMs: 20_000 },
    signal,
  );
  if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${text(stderr.head)}`);
  return text(stdout.head).trim();
}

/** Of a host, looked up behind its back: sandboxes by their own names, and the names that owners gave. */
const idsOnDisk = async (folder: string): Promise<string[]> => [
  ...(await sandboxFolders(folder)),
  ...(await readdir(`${folder}/claims`).catch(() => [])),
];
const heldOnDisk = async (folder: string): Promise<number> => (await sandboxFolders(folder)).length;

/** The runtime keeps those of each deployment in a folder of their own. */
async function sandboxFolders(folder: string): Promise<string[]> {
  const deployments = await readdir(`${folder}/process`);
  const names = await Promise.all(deployments.map((name) => readdir(`${folder}/process/${name}`)));
  return names.flat().filter((name) => name.startsWith("sbx_"));
}

describe.skipIf(ailment !== null)("remote sandboxes", () => {
  let stack: RemoteStack;
  let client: RemoteRuntime;
  let hosts: Map<string, Program>;
  const hostOf = async (name: string) => (await client.status(signal)).hosts.find((host) => host.name === name);
  const onProcess = { runtime: "process", args: ["--memory-mb", "100000"] } as const;
  const startHost = async (name: string): Promise<void> => {
    hosts.set(name, await stack.startHost(name, onProcess));
    await waitUntil(async () => (await hostOf(name))?.state === "here");
  };

  const serverArgs = ["--starts-per-second", "1000", "--starts-per-host", "1000"];
  /** Again, with other flags; resolves when all hosts are back. */
  const restartServer = async (...args: string[]): Promise<void> => {
    await stack.server?.kill("SIGTERM");
    await stack.startServer([...serverArgs, ...args]);
    await waitUntil(async () => {
      const { hosts: seen } = await client.status(signal);
      return seen.filter(({ state }) => state === "here").length === hosts.size;
    });
  };

  beforeAll(async () => {
    stack = await RemoteStack.make();
    await stack.startServer([...serverArgs, "--max-ready", "0"]);
    hosts = new Map();
    client = stack.client();
    await Promise.all(["alpha", "beta"].map(startHost));
  });
  // One that failed leaves nothing to the next.
  afterEach(async () => {
    for (const { id } of await listed()) await client.close(id, signal);
  });
  /** Asks until the server knows. */
  const listed = async (): Promise<readonly SandboxFact[]> => {
    let all: readonly SandboxFact[] = [];
    await waitUntil(async () => {
      const answer = await client.list(signal).catch((error: unknown) => error);
      if (answer instanceof Error) expect(answer).toMatchObject({ code: "unavailable", retryable: true });
      else if (Array.isArray(answer)) all = answer;
      return Array.isArray(answer);
    });
    return all;
  };
  afterAll(() => stack?.stop());

  it("are opened where there is least, and act as their host's do", async () => {
    const opened = await Promise.all(Array.from({ length: 4 }, () => client.open(spec(), signal)));
    const { hosts: seen } = await client.status(signal);
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
    expect((await client.list(signal)).map(({ id }) => id).sort()).toEqual(opened.map(({ id }) => id).sort());
    expect(await stack.client("another").list(signal)).toEqual([]);
    for (const { id } of opened) await client.close(id, signal);
    await expect(sandbox.exec({ command: ["true"], timeoutMs: 1000 }, signal)).rejects.toMatchObject({ code: "gone" });
    await client.close(sandbox.id, signal);
  });

  it("stay when their host's process is killed, and are used again when it is back", async () => {
    const sandbox = await client.open(spec(), signal);
    await sh(sandbox, "echo kept > note");
    const [name] = await holderOf(sandbox.id);
    const running = sandbox.exec({ command: ["sleep", "600"], timeoutMs: 600_000 }, signal);
    const failed = expect(running).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await hosts.get(name)?.kill("SIGKILL");
    await failed;
    await expect(client.renew([sandbox.id], 60_000, signal)).rejects.toMatchObject({ code: "unavailable" });
    await startHost(name);
    await waitUntil(async () => (await hostOf(name))?.open === 1);
    expect(await sh(sandbox, "cat note")).toBe("kept");
    expect([...(await client.renew([sandbox.id], 60_000, signal))]).toEqual([sandbox.id]);
    await client.close(sandbox.id, signal);
  });

  it("are gone when their host stays away, and closed on it when it comes back", async () => {
    await restartServer("--max-ready", "0", "--lost-after", "2");
    const [lost, closed] = [await client.open(spec(), signal), await client.open(spec(), signal)];
    const [name] = await holderOf(lost.id);
    const others = [...hosts.keys()].filter((other) => other !== name);
    // On the other one, to be sure that only those of the lost host go.
    const [other] = await holderOf(closed.id);
    expect(others).toContain(other);
    await hosts.get(name)?.kill("SIGKILL");
    await waitUntil(async () => (await hostOf(name))?.state === "lost");
    await expect(client.attach(lost.id, signal)).rejects.toMatchObject({ code: "gone" });
    await expect(sh(lost, "true")).rejects.toMatchObject({ code: "gone" });
    expect(await sh(closed, "echo here")).toBe("here");
    const folder = `${stack.folder}/${name}`;
    await startHost(name);
    await waitUntil(async () => (await heldOnDisk(folder)) === 0);
    expect((await listed()).map(({ id }) => id)).toEqual([closed.id]);
    // Its host is away when it is closed: it ends when the host is back.
    await hosts.get(other)?.kill("SIGKILL");
    await waitUntil(async () => (await hostOf(other))?.state !== "here");
    await client.close(closed.id, signal);
    await expect(client.attach(closed.id, signal)).rejects.toMatchObject({ code: "gone" });
    await startHost(other);
    await waitUntil(async () => (await heldOnDisk(`${stack.folder}/${other}`)) === 0);
    await restartServer("--max-ready", "0");
  });

  it("stay when the server is killed; hosts and clients find it again", async () => {
    const sandbox = await client.open(spec(), signal);
    await sh(sandbox, "echo kept > note");
    const running = sandbox.exec({ command: ["sleep", "600"], timeoutMs: 600_000 }, signal);
    const failed = expect(running).rejects.toMatchObject({ code: "unavailable" });
    await stack.server?.kill("SIGKILL");
    await failed;
    await stack.startServer();
    // Whether it is there is not known until its host is: nobody is told that it is gone.
    await waitUntil(async () => {
      try {
        return (await client.attach(sandbox.id, signal)).id === sandbox.id;
      } catch (error) {
        expect(error).toMatchObject({ code: "unavailable" });
        return false;
      }
    });
    expect(await sh(sandbox, "cat note; pgrep -c sleep || true")).toBe("kept\n0");
    expect((await listed()).map(({ labels }) => labels)).toEqual([{ run: "r1", purpose: "test" }]);
    await client.close(sandbox.id, signal);
    await waitUntil(async () => (await client.status(signal)).hosts.every(({ state }) => state === "here"));
  });

  it("are not said to be gone, nor ended for another client, before their host is back", async () => {
    const [kept, ended] = [await client.open(spec(), signal), await client.open(spec(), signal)];
    const stranger = stack.client("another");
    for (const host of hosts.values()) await host.kill("SIGKILL");
    await stack.server?.kill("SIGKILL");
    await stack.startServer();
    const notKnown = { code: "unavailable", retryable: true };
    // Nobody may take the part that is known for all there is.
    await expect(client.list(signal)).rejects.toMatchObject(notKnown);
    expect(JSON.parse(await get("/v1/sandboxes", "client"))).toEqual({ sandboxes: [], complete: false });
    const never = newId();
    for (const id of [kept.id, never]) await expect(client.attach(id, signal)).rejects.toMatchObject(notKnown);
    await expect(client.renew([kept.id], 60_000, signal)).rejects.toMatchObject(notKnown);
    // Whose it is only its host can tell: each closing counts for the caller's own, whoever comes last.
    await client.close(ended.id, signal);
    for (const id of [kept.id, ended.id]) await stranger.close(id, signal);
    await expect(client.attach(ended.id, signal)).rejects.toMatchObject({ code: "gone" });
    await startHost("alpha");
    await expect(client.list(signal)).rejects.toMatchObject(notKnown);
    await startHost("beta");
    expect((await client.list(signal)).map(({ id }) => id)).toEqual([kept.id]);
    expect(await sh(kept, "echo here")).toBe("here");
    await waitUntil(async () => {
      const held = await Promise.all([...hosts.keys()].map((name) => heldOnDisk(`${stack.folder}/${name}`)));
      return held.reduce((sum, count) => sum + count, 0) === 1;
    });
    // All that were there are back: it is not waited for more.
    await expect(client.attach(never, signal)).rejects.toMatchObject({ code: "gone" });
  });

  it("take an archive whole or not at all, also one that comes in pieces", async () => {
    const sandbox = await client.open(spec(), signal);
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
    for (const name of hosts.keys())
      expect(await readdir(`${stack.folder}/${name}/archives`).catch(() => [])).toEqual([]);
  });

  it("of a client that is killed end with their leases, and what they ran at once", async () => {
    const { mounts: _mounts, ...abandoned } = spec({ leaseMs: 10_000 });
    const program = new Program(
      process.execPath,
      [
        fileURLToPath(new URL("../testing/client-program.mjs", import.meta.url)),
        `${stack.url.replace("http", "ws")}/v1/client`,
        await stack.token("client"),
        clientName("test"),
        JSON.stringify(abandoned),
        JSON.stringify(["sleep", "600"]),
      ],
      {},
    );
    await program.heard(/running/);
    const sandbox = await client.attach(abandoned.id, signal);
    await waitUntil(async () => (await sh(sandbox, "pgrep -c sleep || true")) === "1");
    await program.kill("SIGKILL");
    await waitUntil(async () => (await sh(sandbox, "pgrep -c sleep || true")) === "0");
    const gone = (error: unknown): boolean => error instanceof BoundaryError && error.code === "gone";
    await waitUntil(() => client.attach(abandoned.id, signal).then(() => false, gone));
    await waitUntil(async () => (await client.status(signal)).sandboxes === 0);
  });

  it("open nowhere on a host that drains, also after the server was started anew", async () => {
    const before = await client.open(spec(), signal);
    const [drained] = await holderOf(before.id);
    await client.drain(drained, true, signal);
    const opened = await Promise.all(Array.from({ length: 3 }, () => client.open(spec(), signal)));
    expect((await hostOf(drained))?.open).toBe(1);
    expect(await sh(before, "echo still")).toBe("still");
    await stack.server?.kill("SIGTERM");
    await stack.startServer();
    await waitUntil(async () => (await client.status(signal)).sandboxes === 4);
    expect((await hostOf(drained))?.draining).toBe(true);
    await client.drain(drained, false, signal);
    const after = await client.open(spec(), signal);
    expect(await holderOf(after.id)).toEqual([drained]);
    for (const { id } of [before, after, ...opened]) await client.close(id, signal);
    await expect(client.drain("nowhere", true, signal)).rejects.toMatchObject({ code: "refused" });
  });

  it("that stand ready are taken by one each, and never dead", async () => {
    const { id: _id, labels: _labels, mounts: _mounts, leaseMs: _leaseMs, maxLifeMs, ...like } = spec();
    const warm = async (): Promise<number> =>
      (await client.status(signal)).hosts.reduce((sum, host) => sum + host.warm, 0);
    await restartServer("--max-ready", "3");
    const wanted = { count: 3, maxLifeMs, forMs: 60_000 };
    await client.expect(like, wanted, signal);
    await waitUntil(async () => (await warm()) === 3);
    expect(await client.list(signal)).toEqual([]);
    const taken = await Promise.all(Array.from({ length: 3 }, () => client.open(spec(), signal)));
    await Promise.all(taken.map((sandbox, n) => sh(sandbox, `test ! -e mine && echo ${n} > mine`)));
    expect(await Promise.all(taken.map((sandbox) => sh(sandbox, "cat mine")))).toEqual(["0", "1", "2"]);
    expect(await openedBy("warm")).toBe(3);
    // Known by its new name after its host's process and the server are new, too.
    const [first] = taken;
    if (first === undefined) throw new Error("none");
    const [name] = await holderOf(first.id);
    await hosts.get(name)?.kill("SIGKILL");
    await stack.server?.kill("SIGKILL");
    await stack.startServer();
    await startHost(name);
    await waitUntil(async () => (await listed()).length === 3);
    expect(await sh(first, "cat mine")).toBe("0");
    expect((await client.list(signal)).every(({ labels }) => labels.run === "r1")).toBe(true);
    for (const { id } of taken) await client.close(id, signal);
    expect(await client.list(signal)).toEqual([]);
    // Without any to stand ready, those that do are closed.
    await restartServer("--max-ready", "0");
    for (const each of hosts.keys()) await waitUntil(async () => (await heldOnDisk(`${stack.folder}/${each}`)) === 0);
  });

  it("are refused past the limits, and under names and labels that are not the client's", async () => {
    const sandbox = await client.open(spec(), signal);
    const refusals: readonly [Partial<SandboxSpec>, RegExp][] = [
      [{ id: sandbox.id }, /there is, or was/],
      [{ labels: { "remote-warm": "x" } }, /label remote-warm/],
      [{ mounts: [{ source: "/etc", target: "/x", readOnly: true }] }, /can't mount/],
      [{ resources: { ...noResources, memoryMb: 10_000_000 } }, /that much memory/],
      [{ image: { kind: "name", name: "debian" } }, /no host makes sandboxes from images/],
      [{ leaseMs: 1 }, /leaseMs/],
    ];
    for (const [changes, why] of refusals) {
      const opening = client.open(spec(changes), signal);
      await expect(opening).rejects.toMatchObject({ code: "refused", message: expect.stringMatching(why) });
    }
    const argument = "x".repeat(3_000_000);
    const running = sandbox.exec({ command: ["echo", argument], timeoutMs: 1000 }, signal);
    await expect(running).rejects.toMatchObject({ code: "refused" });
    await client.close(sandbox.id, signal);
  });

  it("wait for nobody's: an opening that is given up leaves nothing", async () => {
    const stop = new AbortController();
    // Nowhere to open: it waits when it is given up.
    for (const name of hosts.keys()) await client.drain(name, true, signal);
    const opening = client.open(spec(), stop.signal);
    await waitUntil(async () => (await client.status(signal)).queued === 1);
    stop.abort(new Error("given up"));
    await expect(opening).rejects.toThrow("given up");
    // The same when it is closed on another connection: its own may be dead, which nobody has noticed yet.
    const waiting = spec();
    const ended = expect(client.open(waiting, signal)).rejects.toMatchObject({ code: "gone" });
    await waitUntil(async () => (await client.status(signal)).queued === 1);
    await stack.client("another").close(waiting.id, signal);
    expect((await client.status(signal)).queued).toBe(1);
    await stack.client().close(waiting.id, signal);
    await ended;
    for (const name of hosts.keys()) await client.drain(name, false, signal);
    await waitUntil(async () => {
      const { sandboxes, queued } = await client.status(signal);
      return sandboxes === 0 && queued === 0;
    });
    for (const name of hosts.keys()) await waitUntil(async () => (await heldOnDisk(`${stack.folder}/${name}`)) === 0);
  });

  it("are metered, and counted for Prometheus", async () => {
    const sandbox = await client.open(spec({ labels: { run: "metered" } }), signal);
    await sh(sandbox, "sleep 1.1");
    await client.close(sandbox.id, signal);
    const usage = (await client.status(signal)).usage.find(({ run }) => run === "metered");
    expect(usage?.sandboxSeconds).toBeGreaterThan(1);
    expect(usage?.reservedMemoryMbSeconds).toBeCloseTo((usage?.sandboxSeconds ?? 0) * 128, 3);
    const metrics = await get("/metrics", "client");
    expect(metrics).toMatch(/rolldeck_sandbox_calls_total\{method="exec"\} \d+/);
    expect(metrics).toMatch(/rolldeck_sandbox_queue_wait_seconds_count \d+/);
    expect(metrics).not.toContain(await stack.token("client"));
  });

  it("are behind tokens of two kinds, of which neither does the other's", async () => {
    expect(JSON.parse(await get("/healthz", null))).toEqual({ ok: true });
    expect(await get("/v1/status", null)).toContain("a token is needed");
    expect(await get("/v1/status", "host")).toContain("a client token is needed");
    const asHost = new RemoteRuntime({
      address: async () => ({ url: stack.url, token: await stack.token("host"), ca: null }),
      ...{ deployment: "x", onTrouble: () => undefined },
    });
    await expect(asHost.open(spec(), signal)).rejects.toMatchObject({ code: "refused" });
    expect(await upgradeStatus("host", await stack.token("client"))).toBe(403);
    expect(await upgradeStatus("host", "a-guess-of-some-length")).toBe(401);
    expect(await rawAnswer("GET // HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")).toMatch(
      / 404 /,
    );
    expect(await rawAnswer("GET // HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).toMatch(/ 401 /);
    const logs = stack.server?.said ?? "";
    for (const kind of ["client", "host"] as const) expect(logs).not.toContain(await stack.token(kind));
  });

  /** Names of the hosts that have it: one. */
  async function holderOf(id: string): Promise<[string]> {
    for (const name of hosts.keys()) {
      if ((await idsOnDisk(`${stack.folder}/${name}`)).some((found) => found.includes(id))) return [name];
    }
    throw new Error(`no host has ${id}`);
  }

  async function openedBy(how: "warm" | "cold"): Promise<number> {
    const lines = (await get("/metrics", "client")).split("\n");
    const counts = lines.filter((line) => line.startsWith("rolldeck_sandbox_opened_total") && line.includes(how));
    return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  async function get(path: string, kind: "client" | "host" | null): Promise<string> {
    const headers: Record<string, string> = kind === null ? {} : { authorization: `Bearer ${await stack.token(kind)}` };
    return await (await fetch(`${stack.url}${path}`, { headers })).text();
  }

  async function rawAnswer(request: string): Promise<string> {
    const socket = connect(stack.port, "127.0.0.1");
    socket.end(request);
    let answer = "";
    for await (const chunk of socket) answer += String(chunk);
    return answer;
  }

  function upgradeStatus(path: string, token: string): Promise<number> {
    const socket = new WebSocket(`${stack.url.replace("http", "ws")}/v1/${path}`, ["rolldeck-sandbox.1"], {
      headers: { authorization: `Bearer ${token}` },
    });
    return new Promise((resolve, reject) => {
      socket.on("error", () => undefined);
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
      socket.on("open", () => reject(new Error("it was let in")));
    });
  }
});
