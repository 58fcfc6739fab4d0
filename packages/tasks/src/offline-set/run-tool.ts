/** A program of the operator's system (git, patch, dpkg-source, pip): ended by itself, all of its output, or an error that shows it. */
import { spawn } from "node:child_process";
import { BoundaryError } from "@rolldeck/contracts/errors";

export interface ToolCall {
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Added to a small environment of ours; the caller's own settings of git, pip and locale don't reach it. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array;
}

const maxOutputBytes = 256 * 1024 * 1024;
const saidCharacters = 2000;

/** What a program may see of the environment: where things are, never how they should behave. */
const passed = ["PATH", "HOME", "TMPDIR", "https_proxy", "http_proxy", "no_proxy"] as const;
/** pip's settings say which index it asks; they are the operator's. */
const passedPrefix = "PIP_";

export function toolEnvironment(from: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = { LC_ALL: "C.UTF-8", TZ: "UTC" };
  for (const [name, value] of Object.entries(from)) {
    const wanted = name.startsWith(passedPrefix) || passed.some((each) => each === name);
    if (value !== undefined && wanted) env[name] = value;
  }
  return env;
}

/** @returns its standard output. @throws BoundaryError("infrastructure") with the end of what it said */
export async function runTool(command: string, args: readonly string[], call: ToolCall): Promise<Buffer> {
  const child = spawn(command, args, {
    cwd: call.cwd,
    env: { ...toolEnvironment(process.env), ...call.env },
    stdio: "pipe",
    signal: call.signal,
  });
  // A program that ends before it read everything breaks the pipe; its exit code says what happened.
  child.stdin.on("error", () => undefined);
  child.stdin.end(call.stdin);
  const out: Buffer[] = [];
  let outBytes = 0;
  let said = "";
  child.stdout.on("data", (bytes: Buffer) => {
    outBytes += bytes.length;
    if (outBytes <= maxOutputBytes) out.push(bytes);
    said = (said + bytes.toString("utf8")).slice(-saidCharacters);
  });
  child.stderr.on("data", (bytes: Buffer) => {
    said = (said + bytes.toString("utf8")).slice(-saidCharacters);
  });
  const what = `${command} ${args.slice(0, 4).join(" ")}`;
  const code = await new Promise<number | string>((resolve, reject) => {
    child.once("error", (cause) => {
      call.signal.throwIfAborted();
      reject(new BoundaryError("infrastructure", "tool", `${command} could not be run: ${cause.message}`, { cause }));
    });
    child.once("close", (exitCode, signal) => resolve(exitCode ?? signal ?? "?"));
  });
  if (code !== 0) throw new BoundaryError("infrastructure", "tool", `${what} failed (${code}): ${said.trim()}`);
  if (outBytes > maxOutputBytes) throw new BoundaryError("infrastructure", "tool", `${what} said more than is kept`);
  return Buffer.concat(out);
}
