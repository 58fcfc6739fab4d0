/** A sandbox server with two hosts of `process` sandboxes, for tests that use them and that end parts of them. */
import { readdir } from "node:fs/promises";
import { noResources, type Sandbox, type SandboxFact, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { hostAilment } from "@rolldeck/sandbox/process/host-ailment";
import type { RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type Program, RemoteStack } from "./remote-stack.ts";
import { waitUntil } from "./wait-until.ts";

const { signal } = new AbortController();
const serverArgs = ["--starts-per-second", "1000", "--starts-per-host", "1000"];
const onProcess = { runtime: "process", args: ["--memory-mb", "100000"] } as const;

/** Why this machine has none; null where it has. */
export const ailment = await hostAilment();
if (ailment !== null) console.warn(`remote sandboxes are not tested on process hosts: ${ailment}`);

export class ProcessHosts {
  readonly hosts = new Map<string, Program>();
  #scene: { readonly stack: RemoteStack; readonly client: RemoteRuntime } | null = null;

  /** Starts before the tests of a suite and ends after them; to be made in the suite. */
  static ofSuite(): ProcessHosts {
    const made = new ProcessHosts();
    beforeAll(() => made.#start());
    // One that failed leaves nothing to the next.
    afterEach(() => made.closeAll());
    afterAll(() => made.#scene?.stack.stop());
    return made;
  }

  private constructor() {}

  get stack(): RemoteStack {
    if (this.#scene === null) throw new Error("the hosts are not started");
    return this.#scene.stack;
  }

  /** Of the sandbox server, as most tests use it. */
  get client(): RemoteRuntime {
    if (this.#scene === null) throw new Error("the hosts are not started");
    return this.#scene.client;
  }

  async #start(): Promise<void> {
    const stack = await RemoteStack.make();
    this.#scene = { stack, client: stack.client() };
    await stack.startServer([...serverArgs, "--max-ready", "0"]);
    await Promise.all(["alpha", "beta"].map((name) => this.startHost(name)));
  }

  /** Of a host, for what is looked up behind its back. */
  folder(name: string): string {
    return `${this.stack.folder}/${name}`;
  }

  async hostOf(name: string) {
    return (await this.client.status(signal)).hosts.find((host) => host.name === name);
  }

  async startHost(name: string): Promise<void> {
    this.hosts.set(name, await this.stack.startHost(name, onProcess));
    await waitUntil(async () => (await this.hostOf(name))?.state === "here");
  }

  /** Again, with other flags; resolves when all hosts are back. */
  async restartServer(...args: string[]): Promise<void> {
    await this.stack.server?.kill("SIGTERM");
    await this.stack.startServer([...serverArgs, ...args]);
    await waitUntil(async () => {
      const { hosts: seen } = await this.client.status(signal);
      return seen.filter(({ state }) => state === "here").length === this.hosts.size;
    });
  }

  /** Asks until the server knows. */
  async listed(): Promise<readonly SandboxFact[]> {
    let all: readonly SandboxFact[] = [];
    await waitUntil(async () => {
      const answer = await this.client.list(signal).catch((error: unknown) => error);
      if (answer instanceof Error) expect(answer).toMatchObject({ code: "unavailable", retryable: true });
      else if (Array.isArray(answer)) all = answer;
      return Array.isArray(answer);
    });
    return all;
  }

  async closeAll(): Promise<void> {
    for (const { id } of await this.listed()) await this.client.close(id, signal);
  }

  /** Name of the host that has it. */
  async holderOf(id: string): Promise<string> {
    for (const name of this.hosts.keys()) {
      if ((await idsOnDisk(this.folder(name))).some((found) => found.includes(id))) return name;
    }
    throw new Error(`no host has ${id}`);
  }

  /** On the host's disk. */
  async heldOn(name: string): Promise<number> {
    return (await sandboxFolders(this.folder(name))).length;
  }

  async get(path: string, kind: "client" | "host" | null): Promise<string> {
    const headers: Record<string, string> =
      kind === null ? {} : { authorization: `Bearer ${await this.stack.token(kind)}` };
    return await (await fetch(`${this.stack.url}${path}`, { headers })).text();
  }
}

/** Sandboxes by their own names, and the names that owners gave. */
const idsOnDisk = async (folder: string): Promise<string[]> => [
  ...(await sandboxFolders(folder)),
  ...(await readdir(`${folder}/claims`).catch(() => [])),
];

/** The runtime keeps those of each deployment in a folder of their own. */
async function sandboxFolders(folder: string): Promise<string[]> {
  const deployments = await readdir(`${folder}/process`);
  const names = await Promise.all(deployments.map((name) => readdir(`${folder}/process/${name}`)));
  return names.flat().filter((name) => name.startsWith("sbx_"));
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
export const newId = (): string =>
  `sbx_${Array.from({ length: 20 }, () => alphabet.charAt(Math.floor(Math.random() * 36))).join("")}`;

export const smallSpec = (changes: Partial<SandboxSpec> = {}): SandboxSpec => ({
  ...{ id: newId(), labels: { run: "r1", purpose: "test" }, image: null, workdir: null, environment: {} },
  resources: { ...noResources, memoryMb: 128, pids: 64, diskMb: 16 },
  ...{ network: { mode: "none" }, services: [], mounts: [], leaseMs: 60_000, maxLifeMs: 600_000 },
  ...changes,
});

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

/** What a script that must succeed prints. */
export async function sh(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, exitCode, stderr } = await sandbox.exec(
    { command: ["bash", "-c", script], timeoutMs: 20_000 },
    signal,
  );
  if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${text(stderr.head)}`);
  return text(stdout.head).trim();
}
