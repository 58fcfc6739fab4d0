/** The stages of a rollout of a Harbor task over any runtime, without a database: what is kept is a map. */
import { randomBytes } from "node:crypto";
import type { Sandbox, SandboxRuntime, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type {
  FinishedRollout,
  GradingSandboxes,
  NewEvidence,
  Task,
  TaskInstance,
  Verdict,
} from "@rolldeck/contracts/ports/task";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";

const signal = new AbortController().signal;

export class HarborStage {
  readonly kept = new Map<string, Uint8Array>();
  readonly #runtime: SandboxRuntime;
  readonly #spec: TaskSandbox;
  readonly #open: Sandbox[] = [];
  #agent: Sandbox | null = null;

  constructor(
    readonly task: Task,
    readonly instance: TaskInstance,
    runtime: SandboxRuntime,
  ) {
    this.#runtime = runtime;
    const spec = task.sandboxFor?.(instance);
    if (spec === undefined) throw new TypeError(`${task.name} has no sandbox`);
    this.#spec = spec;
  }

  get agent(): Sandbox {
    if (this.#agent === null) throw new TypeError("not started");
    return this.#agent;
  }

  async start(): Promise<Sandbox> {
    this.#agent = await this.#opened(this.#spec);
    await this.task.setUp?.(this.instance, this.#agent, signal);
    return this.#agent;
  }

  /** A command of the agent's; what it prints. */
  async act(script: string): Promise<string> {
    const result = await this.agent.exec({ command: ["bash", "-c", script], timeoutMs: 30_000 }, signal);
    return `${Buffer.from(result.stdout.head)}${Buffer.from(result.stderr.head)}`;
  }

  /** @param by another worker's opened task, where it is another that goes on */
  answer(done: number, by: Task = this.task): Promise<ToolOutcome | null> {
    return Promise.resolve(by.nextStep?.(this.instance, this.agent, { done, keep: this.#keep, signal }) ?? null);
  }

  async collect(): Promise<void> {
    if (this.task.gradeInPlace !== true) await this.agent.killAll(signal);
    for (const evidence of (await this.task.collect?.(this.instance, this.agent, signal)) ?? [])
      await this.#keep(evidence);
    if (this.task.gradeInPlace !== true) await this.#close(this.agent);
  }

  async verify(
    by: Task = this.task,
    finalAnswer = "done",
  ): Promise<Verdict & { readonly evidence: ReadonlyMap<string, string> }> {
    const evidence = new Map<string, string>();
    const opened: Sandbox[] = [];
    const sandboxes: GradingSandboxes = {
      open: async (spec) => {
        const sandbox = await this.#opened(spec ?? this.#spec);
        opened.push(sandbox);
        return sandbox;
      },
      agent: async () => this.agent,
      collected: async (name) => this.kept.get(name) ?? null,
      keep: async ({ name, content }) => void evidence.set(name, Buffer.from(content).toString("utf8")),
    };
    const rollout: FinishedRollout = { ending: "finish_tool", finalAnswer, turns: 1, toolCalls: [] };
    try {
      const verdict = await by.verify(this.instance, rollout, { signal, judge: null, sandboxes });
      return { ...verdict, evidence };
    } finally {
      for (const sandbox of opened) await this.#close(sandbox);
    }
  }

  async end(): Promise<void> {
    for (const sandbox of [...this.#open]) await this.#close(sandbox);
  }

  readonly #keep = async ({ name, content }: NewEvidence): Promise<void> => void this.kept.set(name, content);

  async #opened(spec: TaskSandbox): Promise<Sandbox> {
    const id = `sbx_${randomBytes(10).toString("hex")}`;
    const life = { leaseMs: 120_000, maxLifeMs: 600_000 };
    const sandbox = await this.#runtime.open({ ...spec, id, labels: { purpose: "test" }, mounts: [], ...life }, signal);
    this.#open.push(sandbox);
    return sandbox;
  }

  async #close(sandbox: Sandbox): Promise<void> {
    const at = this.#open.indexOf(sandbox);
    if (at === -1) return;
    this.#open.splice(at, 1);
    await this.#runtime.close(sandbox.id, signal);
  }
}
