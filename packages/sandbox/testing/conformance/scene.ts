/** What the cases of the conformance suite share: how a sandbox is asked for, and how its answers are read. */
import { randomBytes } from "node:crypto";
import type {
  ExecRequest,
  ExecResult,
  ImageSource,
  Sandbox,
  SandboxRuntime,
  SandboxSpec,
} from "@rolldeck/contracts/ports/sandbox";
import { noResources, sandboxId } from "@rolldeck/contracts/ports/sandbox";
import { expect, it } from "vitest";

/** What a runtime may be unable to do; it then says so in its `limits`. */
export type Ability =
  | "disk" // a file is bounded by diskMb
  | "memory" // memory is bounded, and an end for memory is told
  | "pids"
  | "users" // commands can run as another user of the image
  | "crash"; // sandboxes of a process that was killed end with their leases

export interface ConformanceFacts {
  /** Null where the runtime takes none. */
  readonly image: ImageSource | null;
  /** A folder the sandbox's user may write in, on the sandbox's disk. */
  readonly folder: string;
  /** A folder that holds less than half of a sandbox's memory. */
  readonly smallFolder: string;
  /** A user beside the sandbox's own, where there is one. */
  readonly otherUser: string;
  /** Words of one of its `limits`, by what it can't do. */
  readonly told: Partial<Record<Ability, RegExp>>;
  /** Module whose `makeRuntime(deployment)` makes this runtime in a process of its own, and what that needs to know. */
  readonly holder: { readonly module: string; readonly environment?: Readonly<Record<string, string>> };
  /** Commands join its namespaces from outside, which fills the bounding set; no privilege can be gained from it. */
  readonly keepsBoundingSet?: true;
  /** They can be reset. */
  readonly resets?: true;
  /** How many are open at once. */
  readonly many: number;
}

export type MakeRuntime = (deployment: string) => SandboxRuntime | Promise<SandboxRuntime>;

export const newSandboxId = (): string => sandboxId(randomBytes(20));
export const newDeployment = (): string => `test-${newSandboxId().slice(4, 14)}`;
export const forever = new AbortController().signal;

export class ConformanceScene {
  readonly deployment = newDeployment();
  readonly facts: ConformanceFacts;
  readonly make: MakeRuntime;
  readonly #made: SandboxRuntime[] = [];
  #runtime: SandboxRuntime | null = null;

  constructor(facts: ConformanceFacts, make: MakeRuntime) {
    this.facts = facts;
    this.make = make;
  }

  async start(): Promise<void> {
    this.#runtime = await this.another();
  }

  get runtime(): SandboxRuntime {
    if (this.#runtime === null) throw new Error("the suite has not begun");
    return this.#runtime;
  }

  /** A second view of the same sandboxes, as another process has it. */
  async another(deployment = this.deployment): Promise<SandboxRuntime> {
    const runtime = await this.make(deployment);
    this.#made.push(runtime);
    return runtime;
  }

  spec(changes: Partial<SandboxSpec> = {}): SandboxSpec {
    return {
      id: newSandboxId(),
      image: this.facts.image,
      resources: { ...noResources, cpus: 1, memoryMb: 256, pids: 100 },
      network: { mode: "none" },
      workdir: null,
      environment: {},
      services: [],
      labels: { run: "run-1", purpose: "agent" },
      mounts: [],
      leaseMs: 300_000,
      maxLifeMs: 600_000,
      ...changes,
    };
  }

  open(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return this.runtime.open(this.spec(changes), forever);
  }

  close(sandbox: Sandbox): Promise<void> {
    return this.runtime.close(sandbox.id, forever);
  }

  /** Whatever a failed case left. */
  async end(): Promise<void> {
    if (this.#runtime !== null) {
      for (const { id } of await this.#runtime.list(forever)) await this.#runtime.close(id, forever);
    }
    await Promise.all(this.#made.map((runtime) => runtime.disconnect()));
  }

  /** A case about what not every runtime can: where it can't, that it says so. */
  able(ability: Ability, name: string, test: () => Promise<void>): void {
    const told = this.facts.told[ability];
    if (told === undefined) it(name, test);
    else {
      it(`says that it can't: ${name}`, () => {
        expect(this.runtime.limits).toContainEqual(expect.stringMatching(told));
      });
    }
  }
}

export function run(
  sandbox: Sandbox,
  command: readonly string[],
  changes: Partial<ExecRequest> = {},
): Promise<ExecResult> {
  return sandbox.exec({ command, timeoutMs: 60_000, ...changes }, forever);
}

export const shell = (sandbox: Sandbox, script: string, changes: Partial<ExecRequest> = {}): Promise<ExecResult> =>
  run(sandbox, ["sh", "-c", script], changes);

/** All of a stream that was kept, as text. */
export const text = (output: ExecResult["stdout"]): string => Buffer.concat([output.head, output.tail]).toString();

/** What a script that must succeed prints. */
export async function said(sandbox: Sandbox, script: string, changes: Partial<ExecRequest> = {}): Promise<string> {
  const result = await shell(sandbox, script, changes);
  expect([result.exitCode, text(result.stderr)]).toEqual([0, ""]);
  return text(result.stdout).trimEnd();
}

/** Lines of processes whose words hold `mark`; needs nothing but a shell. */
export async function living(sandbox: Sandbox, mark: string): Promise<string[]> {
  const script = `for p in /proc/[0-9]*; do
    if { IFS= read -r state; } 2>/dev/null <$p/stat; then case $state in *") Z "*) continue ;; esac; fi
    { words=$(tr '\\0' ' ' <$p/cmdline); } 2>/dev/null || continue
    case $words in "$1"*) echo "$words" ;; esac
  done; true`;
  const result = await run(sandbox, ["sh", "-c", script, "sh", mark]);
  return text(result.stdout)
    .split("\n")
    .filter((line) => line !== "");
}

export const boundary = (code: string) => expect.objectContaining({ name: "BoundaryError", boundary: "sandbox", code });
export const fileError = (code: string) => expect.objectContaining({ name: "SandboxFileError", code });

export async function until(condition: () => Promise<boolean>, limitMs: number): Promise<boolean> {
  const endMs = Date.now() + limitMs;
  for (;;) {
    if (await condition()) return true;
    if (Date.now() > endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
