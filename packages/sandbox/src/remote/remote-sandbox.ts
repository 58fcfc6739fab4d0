/** A sandbox behind a gateway. Reads are sent again when the connection ended before the answer; what acts is sent once. */
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { begin, collect } from "./call.ts";
import { joinResult } from "./kept-output.ts";
import { maxFileBytes, type Result } from "./methods.ts";
import { remoteProcess } from "./remote-process.ts";
import type { SharedLink } from "./shared-link.ts";
import type { Stream } from "./stream.ts";

/** Features that the host's runtime has not got are absent, as the port says. */
export function remoteSandbox(link: SharedLink, id: string, { workdir, can }: Result<"attach">): Sandbox {
  const sandbox = new RemoteSandbox(link, id, workdir);
  if (can.includes("snapshot")) sandbox.snapshot = (signal) => snapshot(link, id, signal);
  if (can.includes("reset")) sandbox.reset = (signal) => reset(link, id, signal);
  return sandbox;
}

async function snapshot(link: SharedLink, id: string, signal: AbortSignal): Promise<string> {
  return (await link.call("snapshot", { sandbox: id }, signal)).image;
}

async function reset(link: SharedLink, id: string, signal: AbortSignal): Promise<void> {
  await link.call("reset", { sandbox: id }, signal);
}

class RemoteSandbox implements Sandbox {
  readonly runtime = "remote";
  snapshot?: (signal: AbortSignal) => Promise<string>;
  reset?: (signal: AbortSignal) => Promise<void>;
  readonly #link: SharedLink;

  constructor(
    link: SharedLink,
    readonly id: string,
    readonly workdir: string,
  ) {
    this.#link = link;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    const { stdin, command, ...rest } = request;
    const params = { ...rest, sandbox: this.id, command: [...command], stdin: stdin !== undefined };
    const { stream, result } = await this.#link.begin("exec", params, signal);
    if (stdin !== undefined) feed(stream, [stdin]);
    // The host keeps no more than was asked for; the figures are checked against what came.
    const kept = [collect(stream.reader(1), maxFileBytes), collect(stream.reader(2), maxFileBytes)] as const;
    const [answer, stdout, stderr] = await Promise.all([result, ...kept]);
    return joinResult(answer, stdout, stderr);
  }

  async spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
    const params = { ...request, sandbox: this.id, command: [...request.command] };
    return await remoteProcess(await this.#link.begin("spawn", params, signal), request.tty !== undefined);
  }

  async killAll(signal: AbortSignal, user?: string): Promise<void> {
    await this.#link.callAgain("killAll", { sandbox: this.id, user }, signal);
  }

  readFile(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#read("readFile", path, options.maxBytes, signal);
  }

  getArchive(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#read("getArchive", path, options.maxBytes, signal);
  }

  async writeFile(
    path: string,
    bytes: Uint8Array,
    options: { readonly mode?: number; readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { stream, result } = await this.#link.begin(
      "writeFile",
      { sandbox: this.id, path, bytes: bytes.length, mode: options.mode, user: options.user },
      signal,
    );
    feed(stream, [bytes]);
    await result;
  }

  async putArchive(
    path: string,
    tar: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const params = { sandbox: this.id, path, user: options.user };
    const { stream, result } = await this.#link.begin("putArchive", params, signal);
    feed(stream, tar instanceof Uint8Array ? [tar] : tar);
    await result;
  }

  #read(method: "readFile" | "getArchive", path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const limit = Math.min(Math.floor(maxBytes), maxFileBytes);
    return this.#link.again(async (link) => {
      const { stream, result } = begin(link, method, { sandbox: this.id, path, maxBytes: limit }, signal);
      const [bytes] = await Promise.all([collect(stream.reader(1), limit), result]);
      return bytes;
    }, signal);
  }
}

/** Sends all of it and ends the channel. A source that fails cancels the call with its error; what ends the stream, the call tells. */
function feed(stream: Stream, chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): void {
  const work = async (): Promise<void> => {
    for await (const chunk of chunks) await stream.write(0, chunk);
    stream.end(0);
  };
  work().catch((error: unknown) => {
    if (!stream.over.aborted) stream.cancel(error instanceof Error ? error : new Error(String(error)));
  });
}
