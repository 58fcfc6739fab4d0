/** What `rolldeck sandbox-host` runs: this machine's runtime, offered to a sandbox server until the signal. */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname, totalmem } from "node:os";
import path from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { removeParts } from "../remote/context-tar.ts";
import { HostHello, protocolVersion } from "../remote/frames.ts";
import { maxFileBytes } from "../remote/methods.ts";
import { SandboxRuntimes } from "../runtimes.ts";
import { parseSandboxSettings } from "../settings.ts";
import { ArchiveSpool } from "./archive-spool.ts";
import { ByteBudget } from "./byte-budget.ts";
import { ContextFolders } from "./context-folders.ts";
import { HeldSandboxes } from "./held-sandboxes.ts";
import { runHostAgent } from "./host-agent.ts";
import { KnownImages } from "./known-images.ts";
import { readToken } from "./token-file.ts";

export interface SandboxHostOptions {
  /** `http://…` or `https://…` */
  readonly server: string;
  readonly tokenFile: string;
  /** Certificates the server is trusted by, PEM; null = the system's. */
  readonly caFile: string | null;
  readonly runtime: "docker" | "process";
  /** Sandboxes at once. */
  readonly max: number;
  /** All their memory together; null = this machine's. */
  readonly memoryMb: number | null;
  /** For people; null = this machine's host name. */
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Kept over restarts: who this host is, whose its sandboxes are. */
  readonly stateFolder: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly say: (message: string) => void;
}

/** Of files and commands' input on their way through this process: four of the largest. */
const maxCallBytes = 4 * maxFileBytes;

/** Resolves after the signal; sandboxes stay, as long as their leases. @throws InputError, BoundaryError("sandbox") */
export async function runSandboxHost(options: SandboxHostOptions, signal: AbortSignal): Promise<void> {
  const { server, tokenFile, caFile, stateFolder, say } = options;
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const hostId = await keptHostId(path.join(stateFolder, "host-id"));
  const onTrouble = (message: string, error: unknown): void => say(`${message}: ${wordsOf(error)}`);
  const runtimes = new SandboxRuntimes({
    settings: parseSandboxSettings(options.variables, process.cwd()),
    deployment: `host-${hostId}`,
    stateFolder,
    onTrouble,
  });
  const runtime = runtimes.get(options.runtime);
  const ailment = await runtime.ailment(signal);
  if (ailment !== null) throw new BoundaryError("sandbox", "unavailable", ailment);
  const contexts = path.join(stateFolder, "contexts");
  await removeParts(contexts);
  const images = await KnownImages.load(path.join(stateFolder, "images.json"));
  const first = helloOf(options, runtime, hostId);
  const address = async () => ({
    url: server,
    token: await readToken(tokenFile, "host"),
    ca: caFile === null ? null : await readFile(caFile, "utf8"),
  });
  await address();
  try {
    await runHostAgent(
      {
        ...{ runtime, images, onTrouble, address },
        held: await HeldSandboxes.load(runtime, path.join(stateFolder, "claims")),
        contexts: new ContextFolders(contexts),
        memory: new ByteBudget(maxCallBytes),
        archives: new ArchiveSpool(path.join(stateFolder, "archives")),
        nowMs: () => Date.now(),
        hello: async () => ({ ...first, images: images.all() }),
        onState: (state, message) => say(state === "joined" ? `${message} as ${first.name}` : `away: ${message}`),
      },
      signal,
    );
  } finally {
    await runtimes.disconnect();
  }
}

/** @throws InputError for what the gateway would not take */
function helloOf(options: SandboxHostOptions, runtime: SandboxRuntime, hostId: string): HostHello {
  const hello = HostHello.safeParse({
    k: "host-hello",
    version: protocolVersion,
    hostId,
    name: options.name ?? hostname(),
    bootId: randomUUID(),
    runtime: runtime.name,
    isolation: runtime.isolation,
    limits: [...runtime.limits],
    maxSandboxes: options.max,
    memoryMb: options.memoryMb ?? Math.floor(totalmem() / 2 ** 20),
    labels: options.labels,
    images: [],
  });
  if (hello.success) return hello.data;
  throw new InputError(hello.error.issues.map(({ path: at, message }) => ({ path: at.join("."), message })));
}

async function keptHostId(file: string): Promise<string> {
  const made = randomBytes(12).toString("hex");
  try {
    await writeFile(file, made, { flag: "wx", mode: 0o600 });
    return made;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    return (await readFile(file, "utf8")).trim();
  }
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
