/**
 * The sandboxes of one host under the names that clients know. One that was opened ahead has a name of its own in the runtime; when
 * a client takes it, a small file says whose it is from then on, so that this host's next process knows it too. Invariant: a
 * sandbox has one owner in its life.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox, SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import { Labels } from "../remote/frames.ts";
import type { HeldFact } from "../remote/methods.ts";
import { gone } from "../remote/wire-error.ts";
import { imageKey, SandboxId, type WireSpec, warmLabel } from "../remote/wire-spec.ts";

const Claim = z.strictObject({
  id: SandboxId,
  /** Its name in the runtime. */
  inner: SandboxId,
  labels: Labels,
  createdAtMs: z.number(),
  /** It is closed then at the latest: the runtime's own limit began when it was opened ahead. */
  endsAtMs: z.number(),
});
type Claim = z.infer<typeof Claim>;

const attachLimitMs = 30_000;

interface Asked {
  readonly image: string;
  readonly cpus: number | null;
  readonly memoryMb: number | null;
}

export class HeldSandboxes {
  readonly #runtime: SandboxRuntime;
  readonly #folder: string;
  readonly #claims = new Map<string, Claim>();
  readonly #asked = new Map<string, Asked>();
  readonly #attached = new Map<string, Promise<Sandbox>>();

  /** Claims of a process before this one are read. */
  static async load(runtime: SandboxRuntime, folder: string): Promise<HeldSandboxes> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const held = new HeldSandboxes(runtime, folder);
    for (const name of await readdir(folder)) {
      if (!name.endsWith(".json")) continue;
      const claim = readClaim(await readFile(path.join(folder, name), "utf8"));
      if (claim === null) await rm(path.join(folder, name), { force: true });
      else held.#claims.set(claim.id, claim);
    }
    return held;
  }

  private constructor(runtime: SandboxRuntime, folder: string) {
    this.#runtime = runtime;
    this.#folder = folder;
  }

  /** The runtime's name for it. */
  inner(id: string): string {
    return this.#claims.get(id)?.inner ?? id;
  }

  /** One that was opened ahead has this name. */
  isTaken(id: string): boolean {
    return this.#claims.has(id);
  }

  opened(id: string, sandbox: Sandbox, spec: WireSpec): void {
    this.#attached.set(id, Promise.resolve(sandbox));
    this.#asked.set(id, askedOf(spec));
  }

  /** @throws BoundaryError("sandbox", "gone") */
  sandbox(id: string): Promise<Sandbox> {
    const known = this.#attached.get(id);
    if (known !== undefined) return known;
    if (this.#isTakenFrom(id)) return Promise.reject(gone(id, "it has another name since it was taken"));
    // For all who want it: no caller's signal.
    const attached = this.#runtime.attach(this.inner(id), AbortSignal.timeout(attachLimitMs));
    this.#attached.set(id, attached);
    // Not remembered: the next one asks again.
    attached.catch(() => {
      if (this.#attached.get(id) === attached) this.#attached.delete(id);
    });
    return attached;
  }

  /** From now on it is the spec's. @throws BoundaryError("sandbox", "gone") when someone has it */
  async take(warm: string, spec: WireSpec, nowMs: number): Promise<void> {
    if (this.#isTakenFrom(warm) || this.#claims.has(spec.id)) throw gone(warm, "it was taken");
    const endsAtMs = nowMs + spec.maxLifeMs;
    const claim: Claim = { id: spec.id, inner: warm, labels: spec.labels, createdAtMs: nowMs, endsAtMs };
    this.#claims.set(spec.id, claim);
    this.#asked.set(spec.id, askedOf(spec));
    const file = this.#file(spec.id);
    try {
      await writeFile(`${file}.part`, JSON.stringify(claim), { mode: 0o600 });
      await rename(`${file}.part`, file);
    } catch (error) {
      await this.forget(spec.id);
      throw error;
    }
    this.forgetAttached(warm);
  }

  /** Of what is not there any more. */
  async forget(id: string): Promise<void> {
    this.forgetAttached(id);
    this.#asked.delete(id);
    if (this.#claims.delete(id)) await rm(this.#file(id), { force: true });
  }

  /** A failure of the sandbox itself: the next use asks the runtime again. */
  forgetIfGone(id: string, error: unknown): void {
    if (error instanceof BoundaryError && error.code === "gone") this.forgetAttached(id);
  }

  /** All that the runtime has, by the names that clients know. What it has no more is forgotten. */
  async list(signal: AbortSignal): Promise<HeldFact[]> {
    const known = new Set([...this.#claims.keys(), ...this.#asked.keys(), ...this.#attached.keys()]);
    const before = [...known].map((id) => ({ id, inner: this.inner(id) }));
    const facts = await this.#runtime.list(signal);
    const byInner = new Map([...this.#claims.values()].map((claim) => [claim.inner, claim]));
    const there = new Set(facts.map((fact) => fact.id));
    for (const { id, inner } of before) if (!there.has(inner)) await this.forget(id);
    return facts.map((fact): HeldFact => {
      const claim = byInner.get(fact.id);
      const { id, labels, createdAtMs } = claim ?? fact;
      const warm = claim === undefined && warmLabel in fact.labels;
      const asked = this.#asked.get(id) ?? { image: null, cpus: null, memoryMb: null };
      return { id, labels: { ...labels }, createdAtMs, state: fact.state, warm, ...asked };
    });
  }

  /** Those that were taken and are past their life. */
  overdue(nowMs: number): string[] {
    return [...this.#claims.values()].filter((claim) => claim.endsAtMs <= nowMs).map((claim) => claim.id);
  }

  #isTakenFrom(inner: string): boolean {
    return [...this.#claims.values()].some((claim) => claim.inner === inner);
  }
  /** The next use asks the runtime. */
  forgetAttached(id: string): void {
    this.#attached.delete(id);
  }
  #file(id: string): string {
    return path.join(this.#folder, `${id}.json`);
  }
}

const askedOf = (spec: WireSpec): Asked => ({
  image: imageKey(spec.image),
  cpus: spec.resources.cpus,
  memoryMb: spec.resources.memoryMb,
});

function readClaim(text: string): Claim | null {
  try {
    return Claim.parse(JSON.parse(text));
  } catch {
    // Half a file of a process that was killed: what it claimed was never handed out.
    return null;
  }
}
