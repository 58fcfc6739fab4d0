/** What stands beside a sandbox, in real Docker: services by name, a list of allowed hosts, and nothing else. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import {
  type NetworkPolicy,
  noResources,
  type Sandbox,
  type SandboxService,
  type SandboxSpec,
} from "@rolldeck/contracts/ports/sandbox";
import Docker from "dockerode";
import { pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testDocker } from "../../testing/test-docker.ts";
import { parseSandboxSettings } from "../settings.ts";
import { besideOwners } from "./beside.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const found = testDocker();
const docker = new Docker({ socketPath: found?.socket ?? "" });
const image = { kind: "name", name: found?.image ?? "" } as const;
const deployment = `beside-${randomBytes(4).toString("hex")}`;
const outside = `${deployment}-outside`;
const proxyImage = `${deployment}-proxy`;
const signal = new AbortController().signal;
const runtime = new DockerRuntime({
  settings: parseSandboxSettings(
    {
      ROLLDECK_DOCKER_SOCKET: found?.socket ?? "",
      ROLLDECK_EGRESS_IMAGE: `${proxyImage}:latest`,
      ROLLDECK_EGRESS_NETWORK: outside,
      ROLLDECK_EGRESS_PRIVATE: "1",
    },
    "/",
  ),
  deployment,
  stateFolder: "/nonexistent",
  onTrouble: (message, error) => console.error(message, error),
});

const serve = (word: string, port: number): string[] => [
  "sh",
  "-c",
  `mkdir /tmp/www && cd /tmp/www && echo ${word} > index.html && exec python3 -m http.server ${port}`,
];
const service = (change: Partial<SandboxService> = {}): SandboxService => ({
  name: "db",
  image,
  command: serve("from-the-service", 8000),
  environment: {},
  resources: noResources,
  healthcheck: {
    command: ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000')"],
    intervalMs: 300,
    timeoutMs: 5_000,
    startMs: 1_000,
    retries: 20,
  },
  ...change,
});

const opened: string[] = [];
function spec(network: NetworkPolicy, services: readonly SandboxService[] = []): SandboxSpec {
  const id = `sbx_${randomBytes(10).toString("hex")}`;
  opened.push(id);
  const limits = { leaseMs: 120_000, maxLifeMs: 600_000 };
  return {
    id,
    image,
    resources: { ...noResources, memoryMb: 256 },
    network,
    workdir: "/",
    environment: {},
    services,
    labels: {},
    mounts: [],
    ...limits,
  };
}
const python = async (sandbox: Sandbox, script: string): Promise<string> => {
  const { stdout, stderr } = await sandbox.exec({ command: ["python3", "-c", script], timeoutMs: 30_000 }, signal);
  return Buffer.concat([stdout.head, stderr.head]).toString("utf8").trim();
};
const fetched = (sandbox: Sandbox, url: string): Promise<string> =>
  python(
    sandbox,
    `import urllib.request, urllib.error
try: print(urllib.request.urlopen(${JSON.stringify(url)}, timeout=5).read().decode().strip())
except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())
except Exception as e: print("no", type(e).__name__)`,
  );
const reached = (sandbox: Sandbox, host: string, port: number): Promise<string> =>
  python(
    sandbox,
    `import socket
try: socket.create_connection((${JSON.stringify(host)}, ${port}), 2); print("reached")
except Exception as e: print("no")`,
  );

describe.skipIf(found === null)("beside a sandbox", () => {
  let server: Docker.Container;

  beforeAll(async () => {
    await docker.createNetwork({
      Name: outside,
      Internal: true,
      IPAM: { Driver: "default", Config: [{ Subnet: "10.230.7.0/28" }] },
    });
    server = await docker.createContainer({
      Image: image.name,
      Cmd: serve("from-outside", 80),
      HostConfig: { NetworkMode: outside, AutoRemove: true },
      NetworkingConfig: { EndpointsConfig: { [outside]: { IPAMConfig: { IPv4Address: "10.230.7.5" } } } },
    });
    await server.start();
    const context = pack();
    const folder = resolve(import.meta.dirname, "../../../../infra/egress-proxy");
    for (const name of ["Dockerfile", "proxy.py"]) context.entry({ name }, await readFile(join(folder, name)));
    context.finalize();
    const building = await docker.buildImage(Readable.from(context), {
      t: proxyImage,
      networkmode: "none",
      buildargs: { BASE_IMAGE: image.name },
    });
    for await (const _progress of building);
  });
  afterAll(async () => {
    for (const id of opened) await runtime.close(id, signal);
    await runtime.disconnect();
    await server?.remove({ force: true });
    await docker.getNetwork(outside).remove();
    await docker.getImage(proxyImage).remove({ force: true });
  });

  test("services are there by their names when it opens; nothing else is, not even the machine", async () => {
    const wanted = spec({ mode: "none" }, [
      service(),
      service({ name: "cache", command: ["sleep", "600"], healthcheck: null }),
    ]);
    const sandbox = await runtime.open(wanted, signal);
    expect(await fetched(sandbox, "http://db:8000/")).toBe("from-the-service");
    const [gateway] =
      (await python(sandbox, "print(open('/proc/net/fib_trie').read())")).match(/10\.231\.\d+\.\d+(?=\/28)/) ?? [];
    expect(gateway).toBeDefined();
    const machine = gateway?.replace(/\d+$/, (last) => String(Number(last) + 1)) ?? "";
    for (const [host, port] of [
      [machine, 22],
      ["169.254.169.254", 80],
      ["10.230.7.5", 80],
      ["172.17.0.1", 22],
    ] as const) {
      expect([host, await reached(sandbox, host, port)]).toEqual([host, "no"]);
    }
    expect(
      await python(
        sandbox,
        "import socket\ntry: print(socket.gethostbyname('example.org'))\nexcept OSError: print('no name')",
      ),
    ).toBe("no name");
    await runtime.close(wanted.id, signal);
    expect((await besideOwners(docker, deployment)).has(wanted.id)).toBe(false);
  });

  test("only hosts of the list are reached, through the proxy and no other way", async () => {
    const wanted = spec({ mode: "allow-list", hosts: ["10.230.7.5"] }, [service()]);
    const sandbox = await runtime.open(wanted, signal);
    await expect.poll(() => fetched(sandbox, "http://10.230.7.5/"), { timeout: 20_000 }).toBe("from-outside");
    expect(await fetched(sandbox, "http://db:8000/")).toBe("from-the-service");
    expect(await fetched(sandbox, "http://10.230.7.6/")).toMatch(/^403 .*not on the list/);
    expect(await fetched(sandbox, "http://169.254.169.254/latest/meta-data/")).toMatch(/^403/);
    expect(await fetched(sandbox, "http://10.230.7.5:8080/")).toMatch(/^403/);
    expect(await reached(sandbox, "10.230.7.5", 80)).toBe("no");
    // What the request says of itself does not count: the address does.
    const disguised = `import socket
s = socket.create_connection(("egress", 3128), 5)
s.sendall(b"GET http://10.230.7.6/ HTTP/1.1\\r\\nHost: 10.230.7.5\\r\\n\\r\\n")
print(s.recv(100).split(b"\\r\\n")[0].decode())`;
    expect(await python(sandbox, disguised)).toContain("403");
  });

  test.each([
    ["one that ends at once", service({ command: ["sh", "-c", "exit 3"], healthcheck: null }), /ended/],
    [
      "one that never gets well",
      service({
        command: ["sleep", "60"],
        healthcheck: { command: ["false"], intervalMs: 100, timeoutMs: 500, startMs: 0, retries: 2 },
      }),
      /well/,
    ],
    ["one with the sandbox's own name", service({ name: "main" }), /called main/],
  ])("a service that can't be had leaves nothing: %s", async (_what, bad, words) => {
    const wanted = spec({ mode: "none" }, [bad]);
    await expect(runtime.open(wanted, signal)).rejects.toMatchObject({
      code: "refused",
      message: expect.stringMatching(words),
    });
    expect((await besideOwners(docker, deployment)).has(wanted.id)).toBe(false);
    expect(await runtime.list(signal)).not.toContainEqual(expect.objectContaining({ id: wanted.id }));
  });

  test("opening that is broken off leaves nothing", async () => {
    const wanted = spec({ mode: "none" }, [
      service({ healthcheck: { command: ["false"], intervalMs: 300, timeoutMs: 500, startMs: 0, retries: 500 } }),
    ]);
    const abort = new AbortController();
    const opening = runtime.open(wanted, abort.signal);
    setTimeout(() => abort.abort(new Error("no longer wanted")), 1_500);
    await expect(opening).rejects.toThrow("no longer wanted");
    await expect
      .poll(async () => (await besideOwners(docker, deployment)).has(wanted.id), { timeout: 20_000 })
      .toBe(false);
  });
});
