/** One of our server processes, bundled once and run as a person's would be: what chaos kills, stops and starts again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { build, type Plugin } from "esbuild";

export const root = path.resolve(import.meta.dirname, "../..");

/** What is run, and what it says once it is ready. */
export interface Program {
  readonly name: string;
  /** Relative to the repository's root. */
  readonly entry: string;
  /** App whose packages it needs: its folder under `apps`. */
  readonly app: "api" | "worker";
  readonly ready: string;
}
const bundleOf = ({ app, name }: Program) => path.join(root, "apps", app, "dist/chaos", `${name}.mjs`);

/** Once per process: programs then start in a fraction of the time that compiling each of them takes. */
const bundled = new Map<string, Promise<void>>();
export function bundle(program: Program): Promise<void> {
  const made = bundled.get(program.entry);
  if (made !== undefined) return made;
  const making = writeBundle(program);
  bundled.set(program.entry, making);
  return making;
}

async function writeBundle(program: Program): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [path.join(root, program.entry)],
    outfile: bundleOf(program),
    write: false,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "error",
    plugins: [keepPackagesExternal],
  });
  // Whole or not at all: another test's processes may be starting from it.
  const part = `${bundleOf(program)}.${process.pid}`;
  await mkdir(path.dirname(part), { recursive: true });
  await writeFile(part, outputFiles[0]?.contents ?? "");
  await rename(part, bundleOf(program));
}

const keepPackagesExternal: Plugin = {
  name: "keep-packages-external",
  setup: (api) =>
    api.onResolve({ filter: /^[^./]/ }, (args) =>
      args.kind === "entry-point" || args.path.startsWith("@rolldeck/")
        ? undefined
        : { path: args.path, external: true },
    ),
};

export class ProcessUnderTest {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #started: Promise<void>;
  #said = "";

  /** @param program bundled already */
  constructor(program: Program, env: Readonly<Record<string, string>>) {
    // Without a channel and with an open stdin it lives until it is told, or killed.
    const child = spawn(process.execPath, [bundleOf(program)], {
      cwd: root,
      env: { ...cleanEnv(), ...env },
      stdio: "pipe",
    });
    this.#child = child;
    this.#exited = once(child, "exit");
    this.#started = new Promise((resolve, reject) => {
      let isReady = false;
      const listen = (chunk: Buffer): void => {
        this.#said += chunk.toString();
        if (isReady || !this.#said.includes(program.ready)) return;
        isReady = true;
        resolve();
      };
      child.stdout?.on("data", listen);
      child.stderr?.on("data", listen);
      child.once("exit", () => reject(new Error(`it ended before it was ready: ${this.#said}`)));
    });
    this.#started.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }
  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
  /** Everything it printed. */
  get output(): string {
    return this.#said;
  }
  get exitCode(): number | null {
    return this.#child.exitCode;
  }
  started(): Promise<void> {
    return this.#started;
  }
  async exited(): Promise<void> {
    await this.#exited;
  }
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
  /** As the kernel ends it: no handler runs. */
  async kill(): Promise<void> {
    if (this.isAlive) this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

const cleanEnv = (): Record<string, string> => ({ PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "/" });
