/** A sandbox server and hosts as processes of their own, as they are started for real, and clients of theirs. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";

const root = path.resolve(import.meta.dirname, "../../..");

/** A child process whose output is kept, and what it is waited to say. */
export class Program {
  readonly child: ChildProcess;
  said = "";
  readonly exited: Promise<number | null>;
  #onSaid: (() => void)[] = [];

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env, cwd: root });
    const hear = (chunk: Buffer): void => {
      this.said += chunk.toString();
      for (const wake of this.#onSaid.splice(0)) wake();
    };
    this.child.stdout?.on("data", hear);
    this.child.stderr?.on("data", hear);
    this.exited = new Promise((resolve) =>
      this.child.once("exit", (code) => {
        resolve(code);
        for (const wake of this.#onSaid.splice(0)) wake();
      }),
    );
  }

  async heard(pattern: RegExp): Promise<RegExpExecArray> {
    while (true) {
      const match = pattern.exec(this.said);
      if (match !== null) return match;
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`it ended without saying ${pattern}:\n${this.said}`);
      }
      await new Promise<void>((resolve) => this.#onSaid.push(resolve));
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal);
    await this.exited;
  }
}

export interface HostChoice {
  readonly runtime: "docker" | "process";
  readonly dockerSocket?: string;
  readonly args?: readonly string[];
}

export class RemoteStack {
  readonly folder: string;
  readonly #programs: Program[] = [];
  readonly #clients: RemoteRuntime[] = [];
  #serverArgs: readonly string[] = [];
  server: Program | null = null;
  port = 0;
  url = "";
  ca: string | null = null;

  static async make(): Promise<RemoteStack> {
    const { buildServers } = await import(pathToFileURL(path.join(root, "apps/cli/bin/build-servers.mjs")).href);
    await buildServers(["sandbox-server", "cli"]);
    return new RemoteStack(await mkdtemp(path.join(tmpdir(), "rolldeck-remote-")));
  }

  private constructor(folder: string) {
    this.folder = folder;
  }

  get tokenFile(): string {
    return path.join(this.folder, "tokens");
  }

  /** Again on the same port after it ended. */
  async startServer(args: readonly string[] = this.#serverArgs): Promise<void> {
    this.#serverArgs = args;
    const main = path.join(root, "apps/sandbox-server/dist/main.mjs");
    const own = ["--port", String(this.port), "--token-file", this.tokenFile];
    const state = ["--state-folder", path.join(this.folder, "server")];
    this.server = this.#run(process.execPath, [main, ...own, ...state, ...args], process.env);
    const [, url] = await this.server.heard(/listening at (https?:\/\/[^"\s]+)/);
    this.url = url ?? "";
    this.port = Number(new URL(this.url).port);
  }

  /** Joined when it resolves. The same name is the same host again. */
  async startHost(name: string, choice: HostChoice): Promise<Program> {
    const host = this.spawnHost(name, choice);
    await host.heard(/joined the sandbox server/);
    return host;
  }

  spawnHost(name: string, { runtime, dockerSocket, args = [] }: HostChoice): Program {
    // The command as it is, without the launcher's look at what is installed and built: that has just been done.
    const entry = pathToFileURL(path.join(root, "apps/cli/dist/main.mjs")).href;
    const rolldeck = `const { main } = await import(${JSON.stringify(entry)}); await main(process.argv.slice(1));`;
    const own = ["--server", this.url, "--token-file", this.tokenFile, "--runtime", runtime, "--name", name];
    const state = ["--state-folder", path.join(this.folder, name)];
    const ca = this.ca === null ? [] : ["--ca", path.join(this.folder, "ca.pem")];
    const env = { ...process.env, ROLLDECK_DOCKER_SOCKET: dockerSocket ?? "" };
    return this.#run(
      process.execPath,
      ["--input-type=module", "-e", rolldeck, "--", "sandbox-host", ...own, ...state, ...ca, ...args],
      env,
    );
  }

  client(deployment = "test"): RemoteRuntime {
    const client = new RemoteRuntime({
      address: async () => ({ url: this.url, token: await this.token("client"), ca: this.ca }),
      deployment,
      onTrouble: () => undefined,
    });
    this.#clients.push(client);
    return client;
  }

  async token(kind: "client" | "host"): Promise<string> {
    const [, token] = new RegExp(`^${kind} (\\S+)$`, "m").exec(await readFile(this.tokenFile, "utf8")) ?? [];
    if (token === undefined) throw new Error(`no ${kind} token`);
    return token;
  }

  /** A certificate for 127.0.0.1 by a CA of its own; flags for `startServer`. */
  async makeCertificates(): Promise<string[]> {
    const file = (name: string): string => path.join(this.folder, name);
    const openssl = async (...args: string[]): Promise<void> => {
      const program = this.#run("openssl", args, process.env);
      if ((await program.exited) !== 0) throw new Error(`openssl ${args[0]}: ${program.said}`);
    };
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    await openssl(
      "req",
      "-x509",
      ...key,
      "-days",
      "2",
      "-subj",
      "/CN=test CA",
      "-keyout",
      file("ca.key"),
      "-out",
      file("ca.pem"),
    );
    await openssl("req", ...key, "-subj", "/CN=127.0.0.1", "-keyout", file("server.key"), "-out", file("server.csr"));
    await writeFile(file("san"), "subjectAltName=IP:127.0.0.1\n");
    const ca = ["-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial"];
    await openssl(
      "x509",
      "-req",
      "-in",
      file("server.csr"),
      ...ca,
      "-days",
      "2",
      "-extfile",
      file("san"),
      "-out",
      file("server.pem"),
    );
    this.ca = await readFile(file("ca.pem"), "utf8");
    return ["--tls-cert", file("server.pem"), "--tls-key", file("server.key")];
  }

  /** Sandboxes are closed first, so that none waits for its lease. */
  async stop(): Promise<void> {
    const [client] = this.#clients;
    if (client !== undefined && this.server?.child.exitCode === null) {
      const { signal } = new AbortController();
      for (const { id } of await client.list(signal).catch(() => []))
        await client.close(id, signal).catch(() => undefined);
    }
    for (const each of this.#clients) await each.disconnect();
    // The server first: it closes what stands ready.
    for (const program of [this.server, ...this.#programs].filter((each) => each !== null)) {
      if (program.child.exitCode === null && program.child.signalCode === null) await program.kill("SIGTERM");
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  #run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Program {
    const program = new Program(command, args, env);
    this.#programs.push(program);
    return program;
  }
}
