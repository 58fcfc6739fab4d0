/**
 * The GPU worker's Python environment. Order: `ROLLDECK_PYTHON` if it has torch ≥ 2.4; the project's own venv; else a new venv
 * from Python 3.10–3.13 with the pinned requirements. Progress (step, MB, seconds) goes to the caller.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

export interface InstallProgress {
  /** What is being done, in a few words. */
  readonly step: string;
  readonly doneMb: number | null;
  readonly totalMb: number | null;
}

export interface PythonRequest {
  readonly root: string;
  /** Also install what the worker's tests need. */
  readonly withTests: boolean;
  readonly torch: "cpu" | "cuda" | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly onProgress: (progress: InstallProgress) => void;
  readonly signal?: AbortSignal;
}

/** PyTorch's own index of CPU wheels, used behind `--torch cpu`; ROLLDECK_TORCH_INDEX overrides. */
const cpuIndex = "https://download.pytorch.org/whl/cpu";

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function runPython(
  command: string,
  args: readonly string[],
  request: PythonRequest,
  onLine?: (line: string) => void,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      env: { ...request.env, PIP_DISABLE_PIP_VERSION_CHECK: "1", PYTHONUNBUFFERED: "1" },
      stdio: ["ignore", "pipe", "pipe"],
      signal: request.signal,
    });
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        onLine?.(line);
        if (!line.startsWith("Progress ")) lines.push(line);
        if (lines.length > 60) lines.shift();
      });
    }
    child.once("error", (error) => resolve({ code: -1, output: error.message }));
    child.once("close", (code) => resolve({ code, output: lines.join("\n") }));
  });
}

const probe = `
import sys
try:
    import torch
    torch_version = torch.__version__
except Exception as error:
    torch_version = ""
print(f"{sys.version_info[0]}.{sys.version_info[1]}|{torch_version}")
`;

async function probePython(
  command: string,
  request: PythonRequest,
): Promise<{ version: [number, number]; torch: [number, number] | null } | null> {
  const { code, output } = await runPython(command, ["-c", probe], request);
  const match = /^(\d+)\.(\d+)\|(?:(\d+)\.(\d+))?/m.exec(output);
  if (code !== 0 || match === null) return null;
  const torch: [number, number] | null = match[3] === undefined ? null : [Number(match[3]), Number(match[4])];
  return { version: [Number(match[1]), Number(match[2])], torch };
}

const atLeast = (version: readonly [number, number], major: number, minor: number): boolean =>
  version[0] > major || (version[0] === major && version[1] >= minor);

async function basePython(request: PythonRequest): Promise<string> {
  for (const command of ["python3", "python3.12", "python3.11", "python3.13", "python3.10", "python"]) {
    const found = await probePython(command, request);
    if (found !== null && atLeast(found.version, 3, 10) && !atLeast(found.version, 3, 14)) return command;
  }
  throw new Error(
    "no Python 3.10 to 3.13 was found: install one (Debian: apt install python3 python3-venv), or set ROLLDECK_PYTHON to an interpreter that has torch 2.4 or newer.",
  );
}

/** Hash of what a finished environment holds; a changed requirements file installs again. */
function requirementsHash(request: PythonRequest): string {
  const hash = createHash("sha256").update(`${request.withTests}`);
  for (const file of requirementFiles(request)) hash.update(readFileSync(file));
  return hash.digest("hex");
}

function requirementFiles(request: PythonRequest): string[] {
  const folder = path.join(request.root, "infra/gpu-worker");
  const names = request.withTests ? ["requirements.txt", "requirements-test.txt"] : ["requirements.txt"];
  return names.map((name) => path.join(folder, name)).filter((file) => existsSync(file));
}

/** Lets pip's `--progress-bar raw` lines and its "Downloading x (n MB)" lines become progress. */
function pipLine(line: string, report: (progress: InstallProgress) => void, state: { step: string }): void {
  const raw = /^Progress (\d+) of (\d+)/.exec(line);
  if (raw !== null) {
    report({ step: state.step, doneMb: Number(raw[1]) / 1e6, totalMb: Number(raw[2]) / 1e6 });
    return;
  }
  const doing =
    /^\s*(Collecting|Downloading|Processing|Using cached|Installing collected packages:?|Building wheel for)\s*(\S*)/.exec(
      line,
    );
  if (doing === null) return;
  const what = doing[2]?.split("/").at(-1) ?? "";
  state.step = doing[1]?.startsWith("Installing")
    ? "unpacking packages"
    : `${doing[1]?.toLowerCase()} ${what}`.slice(0, 80);
  report({ step: state.step, doneMb: null, totalMb: null });
}

async function pip(python: string, args: readonly string[], request: PythonRequest): Promise<Ended> {
  const state = { step: "asking for packages" };
  return runPython(
    python,
    ["-m", "pip", "install", "--no-compile", "--progress-bar", "raw", ...args],
    request,
    (line) => pipLine(line, request.onProgress, state),
  );
}

async function installRequirements(python: string, request: PythonRequest): Promise<void> {
  // `--progress-bar raw` needs pip ≥ 24.1.
  const upgraded = await runPython(python, ["-m", "pip", "install", "--upgrade", "pip>=24.1"], request);
  if (upgraded.code !== 0) throw installError("pip", upgraded);
  const files = requirementFiles(request).flatMap((file) => ["-r", file]);
  if (request.torch === "cpu") {
    const torch =
      readFileSync(path.join(request.root, "infra/gpu-worker/requirements.txt"), "utf8").match(/^torch\S*/m)?.[0] ??
      "torch>=2.4";
    const index = request.env.ROLLDECK_TORCH_INDEX ?? cpuIndex;
    const tried = await pip(python, ["--index-url", index, "--retries", "1", "--timeout", "15", torch], request);
    if (tried.code !== 0)
      request.onProgress({
        step: "the CPU index did not answer; using pip's own settings",
        doneMb: null,
        totalMb: null,
      });
  }
  const installed = await pip(python, files, request);
  if (installed.code !== 0) throw installError("the requirements", installed);
}

const installError = (what: string, ended: Ended): Error =>
  new Error(
    `installing ${what} failed (exit ${ended.code}). Check pip's settings and the network, then start again.\n${ended.output.split("\n").slice(-12).join("\n")}`,
  );

async function makeVenv(venv: string, request: PythonRequest): Promise<void> {
  const base = await basePython(request);
  request.onProgress({ step: "making a virtual environment", doneMb: null, totalMb: null });
  const made = await runPython(base, ["-m", "venv", venv], request);
  if (made.code === 0) return;
  rmSync(venv, { recursive: true, force: true });
  const fix = /ensurepip/.test(made.output) ? "On Debian: apt install python3-venv." : "";
  throw new Error(
    `${base} -m venv failed (exit ${made.code}). ${fix}\n${made.output.split("\n").slice(-6).join("\n")}`,
  );
}

/** By what is asked for. */
const underWay = new Map<string, Promise<string>>();

/**
 * Finds or makes an interpreter that can run the GPU worker. Who asks for the same while it is being made waits for that one, whose
 * progress goes to whoever asked first.
 * @returns its path. @throws Error whose message says what to do.
 */
export function preparePython(request: PythonRequest): Promise<string> {
  const key = JSON.stringify([request.root, request.withTests, request.torch, request.env.ROLLDECK_PYTHON]);
  const others = underWay.get(key);
  if (others !== undefined) return others;
  const own = findOrMake(request).finally(() => underWay.delete(key));
  underWay.set(key, own);
  return own;
}

async function findOrMake(request: PythonRequest): Promise<string> {
  const named = request.env.ROLLDECK_PYTHON;
  if (named) {
    const found = await probePython(named, request);
    if (found === null) throw new Error(`ROLLDECK_PYTHON=${named} could not be run.`);
    if (found.torch === null || !atLeast(found.torch, 2, 4)) {
      throw new Error(
        `ROLLDECK_PYTHON=${named} has ${found.torch === null ? "no torch" : `torch ${found.torch.join(".")}`}; install torch 2.4 or newer there, or unset it.`,
      );
    }
    return named;
  }
  const venv = path.join(request.root, "infra/gpu-worker/.venv");
  const python = path.join(venv, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
  const mark = path.join(venv, ".rolldeck-requirements");
  const hash = requirementsHash(request);
  // An environment that has the tests' packages too serves without them as well.
  const accepted = [hash, requirementsHash({ ...request, withTests: true })];
  if (existsSync(python) && existsSync(mark) && accepted.includes(readFileSync(mark, "utf8"))) return python;
  if (!existsSync(python)) await makeVenv(venv, request);
  await installRequirements(python, request);
  writeFileSync(mark, hash);
  return python;
}
