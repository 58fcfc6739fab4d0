/**
 * HTTP over `ssh host docker system dial-stdio`: one ssh process per connection, kept for the next request. The system's ssh is used,
 * with its configuration, agents and known hosts; it asks nothing, and a host key that is not known ends the connection.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Agent } from "node:http";
import { Duplex } from "node:stream";
import type { DockerEndpoint } from "@rolldeck/contracts/host-endpoint";

type SshEndpoint = Extract<DockerEndpoint, { kind: "ssh" }>;

const connectSeconds = 10;
const connections = 6;
/** Unused for so long, a connection ends, ms. */
const idleMs = 60_000;

/** Arguments of ssh. The host's name comes after `--`: it is never an option. */
export function sshArguments(endpoint: SshEndpoint): string[] {
  const { host, port, user, keyFile, knownHostsFile } = endpoint;
  return [
    ...["-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"],
    ...["-o", `ConnectTimeout=${connectSeconds}`, "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=2"],
    ...["-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "PermitLocalCommand=no"],
    ...(keyFile === null ? [] : ["-i", keyFile, "-o", "IdentitiesOnly=yes"]),
    ...(knownHostsFile === null ? [] : ["-o", `UserKnownHostsFile=${knownHostsFile}`]),
    ...(user === null ? [] : ["-l", user]),
    ...["-p", String(port), "--", host, "docker", "system", "dial-stdio"],
  ];
}

export class SshAgent extends Agent {
  readonly #arguments: readonly string[];

  constructor(endpoint: SshEndpoint) {
    super({ keepAlive: true, maxSockets: connections, maxFreeSockets: 2, timeout: idleMs });
    this.#arguments = sshArguments(endpoint);
  }

  override createConnection(): Duplex {
    return new CommandSocket(spawn("ssh", this.#arguments, { stdio: ["pipe", "pipe", "pipe"] }));
  }
}

/** A command's input and output as a socket, as far as an HTTP client uses one. */
class CommandSocket extends Duplex {
  readonly #command: ChildProcess;
  #said = "";
  #timer: NodeJS.Timeout | null = null;

  constructor(command: ChildProcess) {
    super({ allowHalfOpen: true });
    this.#command = command;
    command.stdout?.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) command.stdout?.pause();
    });
    command.stderr?.on("data", (bytes: Buffer) => {
      this.#said = (this.#said + bytes.toString()).slice(-600);
    });
    // A pipe that broke is the end of the command, which says why.
    command.stdin?.on("error", () => undefined);
    command.once("error", (error) =>
      this.destroy(new Error(`ssh could not be run: ${error.message}`, { cause: error })),
    );
    command.once("close", (code) => {
      // Its own words say more than a connection that was reset.
      if (code !== 0 && code !== null) this.destroy(new Error(this.#said.trim() || `ssh ended with ${code}`));
      else this.push(null);
    });
  }

  override _read(): void {
    this.#command.stdout?.resume();
  }
  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#command.stdin?.write(bytes, () => done());
  }
  override _final(done: () => void): void {
    this.#command.stdin?.end(done);
  }
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#command.kill("SIGTERM");
    done(error);
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = ms > 0 ? setTimeout(() => this.emit("timeout"), ms).unref() : null;
    // As a socket does it: no time is the end of waiting.
    if (onTimeout && ms > 0) this.once("timeout", onTimeout);
    else if (onTimeout) this.off("timeout", onTimeout);
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  ref(): this {
    this.#command.ref();
    return this;
  }
  unref(): this {
    this.#command.unref();
    return this;
  }
}
