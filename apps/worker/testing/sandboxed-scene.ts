/**
 * Rollouts in sandboxes on real parts: queue, database, shell, and namespaces of this machine as the sandboxes. Their task: a word in a
 * file is to be doubled; what was collected is graded in a fresh sandbox.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox, SandboxRuntime, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { ProcessRuntime } from "@rolldeck/sandbox/process/process-runtime";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { bash } from "@rolldeck/tools/bash/bash";
import { finish } from "@rolldeck/tools/finish";
import { afterAll, afterEach } from "vitest";
import { type Rig, type RigOptions, smokeConfig, startRig } from "./rig.ts";

const signal = new AbortController().signal;

export const place: TaskSandbox = {
  image: null,
  resources: noResources,
  network: { mode: "none" },
  workdir: null,
  environment: {},
  services: [],
};
export const shell = async (sandbox: Sandbox, script: string): Promise<string> => {
  const { stdout } = await sandbox.exec({ command: ["/bin/sh", "-c", script], timeoutMs: 20_000 }, signal);
  return Buffer.from(stdout.head).toString("utf8");
};
export const bytes = (text: string) => Buffer.from(text);

/** Set up with a word in a file; solved when the file holds it twice, in a fresh sandbox that is given what was collected. */
export const doubled = (change: Partial<Task> = {}): Task => ({
  name: "doubled",
  description: "",
  sandbox: "process",
  tools: ["bash", "finish"],
  defaults: { maxTurns: 20, maxContextTokens: 8192 },
  size: () => null,
  instance: (split, index) => ({ instanceId: `${split}-${index}`, split, index, state: { seed: index } }),
  messages: () => [{ role: "user", content: "double it" }],
  sandboxFor: () => place,
  setUp: async (_instance, sandbox) => {
    await sandbox.writeFile("/tmp/word", bytes("word\n"), {}, signal);
  },
  collect: async (_instance, sandbox) => [
    {
      name: "patch.diff",
      mediaType: "text/x-diff",
      content: await sandbox.readFile("/tmp/word", { maxBytes: 1e6 }, signal),
    },
  ],
  verify: async (_instance, _rollout, { sandboxes }) => {
    const fresh = await sandboxes?.open();
    const collected = (await sandboxes?.collected("patch.diff")) ?? bytes("");
    await fresh?.writeFile("/tmp/word", collected, {}, signal);
    const success = fresh !== undefined && (await shell(fresh, "cat /tmp/word")) === "word\nword\n";
    return { reward: success ? 1 : 0, success, parts: { doubled: success ? 1 : 0 }, notes: null, flags: ["looked at"] };
  },
  ...change,
});

export const recite =
  (...lines: string[]) =>
  ({ prompt }: { prompt: string }) =>
    lines[prompt.split("<|assistant|>").length - 2] ?? lines.at(-1) ?? "";
export const call = (script: string): string => `[bash(command=${JSON.stringify(script)})]`;
export const done = '[finish(answer="done")]';
export const solve = [call("cd /tmp; cat word word > two"), call("mv two word; ls"), done];

export const sandboxTools = { bash, finish };

export const sandboxedConfig = (change: Partial<RunConfigInput> = {}): RunConfigInput => ({
  ...smokeConfig({ algorithm: { groupsPerStep: 1, groupSize: 2 }, budget: { steps: 1 }, ...change }),
  taskSets: [{ name: "doubled" }],
  agent: { dialect: "pythonic", describeTools: false, maxContextTokens: 8192, maxTurns: 20, ...change.agent },
});

/**
 * Where the tests of a file play: one rig at a time, which ends with its test, and whose sandboxes nothing is left of. To be made at
 * the top of the file.
 */
export class SandboxedScene {
  readonly runtime: SandboxRuntime;
  /** Why this machine has no such sandboxes; null where it has. */
  readonly ailment: string | null;
  readonly #folder: string;
  #rig: Rig | null = null;

  static async make(): Promise<SandboxedScene> {
    const folder = await mkdtemp(join(tmpdir(), "rolldeck-sandboxed-"));
    const runtime: SandboxRuntime = new ProcessRuntime({
      settings: parseSandboxSettings({}, folder),
      deployment: "test",
      stateFolder: folder,
      onTrouble: () => undefined,
    });
    const scene = new SandboxedScene(folder, runtime, await runtime.ailment(AbortSignal.timeout(30_000)));
    afterEach(() => scene.#clear());
    afterAll(() => scene.#close());
    return scene;
  }

  private constructor(folder: string, runtime: SandboxRuntime, ailment: string | null) {
    this.#folder = folder;
    this.runtime = runtime;
    this.ailment = ailment;
  }

  /** A rig whose rollouts run `task`. */
  start(task: Task, options: Partial<RigOptions> = {}): Promise<Rig> {
    return this.startWith({
      policy: recite(...solve),
      env: { ROLLDECK_DATA_DIR: this.#folder },
      ...options,
      parts: { tasks: { doubled: task }, tools: sandboxTools, runtime: this.runtime },
    });
  }

  /** A rig of other parts. */
  async startWith(options: RigOptions): Promise<Rig> {
    this.#rig = await startRig(options);
    return this.#rig;
  }

  async rows(sql: string, runId: string) {
    if (this.#rig === null) throw new Error("no rig was started");
    return (await this.#rig.database.pool.query(sql, [runId])).rows;
  }

  outcomes(runId: string) {
    return this.rows("select reward, ending, attempt, flags from rollouts where run_id = $1 order by sample", runId);
  }

  sandboxesIn(runId: string) {
    const sql =
      "select id, purpose, state, attempt, reason, phases from sandboxes where run_id = $1 order by created_at";
    return this.rows(sql, runId);
  }

  async #clear(): Promise<void> {
    await this.#rig?.close();
    this.#rig = null;
    for (const { id } of await this.runtime.list(signal)) await this.runtime.close(id, signal);
  }

  async #close(): Promise<void> {
    await this.runtime.disconnect();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
