/**
 * Sandboxes of namespaces on this machine: bubblewrap under an unprivileged user, for tasks that need no image. Invariants: what a
 * spec asks and this can't give is refused; each sandbox has a folder that tells any process of the deployment about it and a
 * keeper that ends it; nothing is left when opening fails.
 */
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import {
  type Sandbox,
  type SandboxFact,
  type SandboxRuntime,
  type SandboxSpec,
  sandboxIdPattern,
} from "@rolldeck/contracts/ports/sandbox";
import type { RuntimeScene } from "../runtime-scene.ts";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import {
  type CgroupVersion,
  cgroupFolders,
  makeCgroups,
  noCgroups,
  removeCgroups,
  type SandboxCgroups,
  usableCgroups,
} from "./cgroups.ts";
import {
  dropRecord,
  type HeldRecord,
  type HeldSpec,
  isAlive,
  killProcess,
  readLease,
  readRecord,
  writeLease,
} from "./held-record.ts";
import { hostAilment } from "./host-ailment.ts";
import { ProcessSandbox } from "./process-sandbox.ts";
import { workdirTrouble } from "./sandbox-view.ts";
import { limitsOf, nobody, startSandbox } from "./start-sandbox.ts";

/** After the end of its lease, or of its beginning where it has none yet. */
const unfinishedMs = 20_000;
const cgroupName = (id: string): string => `rolldeck-${id}`;

export class ProcessRuntime implements SandboxRuntime {
  readonly name = "process";
  readonly isolation = "namespaces (weaker than containers)";
  readonly limits: readonly string[];
  readonly #root: string;
  #ailment: Promise<string | null> | null = null;
  #cgroups: Promise<CgroupVersion | null> | null = null;

  constructor(readonly scene: RuntimeScene) {
    this.#root = join(scene.stateFolder, "process", encodeURIComponent(scene.deployment));
    this.limits = [
      "no images, networks, services or users: programs are this machine's, files are gone when it ends",
      "disk is memory: /tmp and the home folder hold diskMb each, at most 3/8 of memoryMb, and count as memory",
      ...(process.getuid?.() === 0 ? [] : ["memory and processors are not bounded: the server does not run as root"]),
    ];
  }

  async ailment(): Promise<string | null> {
    this.#ailment ??= hostAilment();
    let isWell = false;
    try {
      const ailment = await this.#ailment;
      isWell = ailment === null;
      return ailment;
    } finally {
      // What is missing may be installed while we run.
      if (!isWell) this.#ailment = null;
    }
  }

  async open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    refuseWhatCantBe(spec);
    const ailment = await this.ailment();
    signal.throwIfAborted();
    // Commands are never run without isolation.
    if (ailment !== null) throw new BoundaryError("sandbox", "refused", ailment);
    const folder = this.#folder(spec.id);
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      throw new BoundaryError("sandbox", "refused", `there is a sandbox named ${spec.id} already`, { cause: error });
    });
    return this.#sandbox(await this.#start(heldSpec(spec), signal));
  }

  #sandbox(record: HeldRecord): ProcessSandbox {
    return new ProcessSandbox(record, (held, signal) => this.#remake(held, signal));
  }

  /** In its folder, which goes where it does not come up. */
  async #start(spec: HeldSpec, signal: AbortSignal): Promise<HeldRecord> {
    const folder = this.#folder(spec.id);
    let cgroups: SandboxCgroups = noCgroups;
    try {
      cgroups = await this.#makeCgroups(spec);
      const uid = process.getuid?.() === 0 ? nobody : null;
      return await startSandbox({ folder, spec, cgroups, uid }, signal);
    } catch (error) {
      await removeCgroups(cgroups.folders);
      await rm(folder, { recursive: true, force: true });
      signal.throwIfAborted();
      if (error instanceof BoundaryError) throw error;
      const words = error instanceof Error ? error.message : String(error);
      throw new BoundaryError("sandbox", "unavailable", `the sandbox could not be made: ${words}`, {
        cause: error,
        retryable: true,
      });
    }
  }

  /** @throws BoundaryError("sandbox", "gone") for one that ended, or that somebody else made anew */
  async #remake({ id, first }: HeldRecord, signal: AbortSignal): Promise<HeldRecord> {
    signal.throwIfAborted();
    const held = await this.#living(id);
    if (held === null || held.first.pid !== first.pid || held.first.start !== first.start) throw sandboxGone(id);
    if (held.spec === undefined)
      throw new BoundaryError("sandbox", "refused", `sandbox ${id} does not say what it was`);
    // Out of sight first: another process would clear up after one that ended.
    await dropRecord(this.#folder(id));
    await endSandbox(held);
    return this.#start(held.spec, signal);
  }

  async attach(id: string): Promise<Sandbox> {
    const record = await this.#living(id);
    if (record === null) throw sandboxGone(id);
    return this.#sandbox(record);
  }

  async renew(ids: readonly string[], leaseMs: number): Promise<ReadonlySet<string>> {
    const renewed = new Set<string>();
    for (const id of ids) {
      if ((await this.#living(id)) === null) continue;
      // Its keeper may take the folder away at this moment: then there is nothing to renew.
      const done = await writeLease(this.#folder(id), Date.now() + leaseMs).then(
        () => true,
        () => false,
      );
      if (done) renewed.add(id);
    }
    return renewed;
  }

  async close(id: string): Promise<void> {
    if (!sandboxIdPattern.test(id)) return;
    const folder = this.#folder(id);
    const record = await readRecord(folder);
    if (record !== null) await endSandbox(record);
    await rm(folder, { recursive: true, force: true });
  }

  async list(): Promise<readonly SandboxFact[]> {
    const names = await readdir(this.#root).catch(() => []);
    const facts: SandboxFact[] = [];
    for (const id of names.filter((name) => sandboxIdPattern.test(name))) {
      const record = await readRecord(this.#folder(id));
      if (record === null) {
        await this.#clearUnfinished(id);
        continue;
      }
      const { labels, createdAtMs } = record;
      const state = (await isAlive(record.first)) ? "running" : "ended";
      // With its keeper killed, too, nobody but us would clear up after it.
      if (state === "ended" && !(await isAlive(record.keeper))) await this.close(id);
      facts.push({ id, labels, state, createdAtMs });
    }
    return facts;
  }

  async disconnect(): Promise<void> {}

  async #living(id: string): Promise<HeldRecord | null> {
    if (!sandboxIdPattern.test(id)) return null;
    const record = await readRecord(this.#folder(id));
    return record !== null && (await isAlive(record.first)) ? record : null;
  }

  /** Of an opener that was killed before the sandbox could be found: its keeper ends it, where it has one by then. */
  async #clearUnfinished(id: string): Promise<void> {
    const folder = this.#folder(id);
    const leaseMs = await readLease(folder);
    const endsMs =
      leaseMs ??
      (await stat(folder).then(
        ({ mtimeMs }) => mtimeMs,
        () => Number.POSITIVE_INFINITY,
      ));
    if (Date.now() < endsMs + unfinishedMs) return;
    this.#cgroups ??= usableCgroups();
    const version = await this.#cgroups;
    if (version !== null) await removeCgroups(cgroupFolders(version, cgroupName(id)));
    await rm(folder, { recursive: true, force: true });
  }

  async #makeCgroups(spec: HeldSpec): Promise<SandboxCgroups> {
    this.#cgroups ??= usableCgroups();
    const version = await this.#cgroups;
    return version === null ? noCgroups : makeCgroups(version, cgroupName(spec.id), limitsOf(spec));
  }

  #folder(id: string): string {
    return join(this.#root, id);
  }
}

/** @throws BoundaryError("sandbox", "refused") that names the first thing it can't give */
function refuseWhatCantBe(spec: SandboxSpec): void {
  const trouble = spec.workdir === null ? null : workdirTrouble(spec.workdir);
  const refusals: [boolean, string][] = [
    [spec.image !== null, "it has no images; use another sandbox runtime for tasks that need one"],
    [spec.network.mode !== "none", "it has no network"],
    [spec.services.length > 0, "it has no services beside it"],
    [spec.user !== undefined && spec.user !== "nobody", "its only user is nobody"],
    [trouble !== null, `its working directory ${spec.workdir} ${trouble}`],
    [!sandboxIdPattern.test(spec.id), "its name is none of a sandbox"],
  ];
  const [, why] = refusals.find(([applies]) => applies) ?? [];
  if (why !== undefined) throw new BoundaryError("sandbox", "refused", `a process sandbox can't be opened so: ${why}`);
}

const heldSpec = ({
  id,
  labels,
  resources,
  workdir,
  environment,
  mounts,
  leaseMs,
  maxLifeMs,
}: SandboxSpec): HeldSpec => ({
  ...{ id, labels, resources, workdir, environment, leaseMs, maxLifeMs },
  mounts: [...mounts],
});

/** The keeper first: it would take the folder away under us. */
async function endSandbox(record: HeldRecord): Promise<void> {
  await killProcess(record.keeper);
  await killProcess(record.first);
  for (let attempt = 0; attempt < 500 && (await isAlive(record.first)); attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await removeCgroups(record.cgroups.folders);
}
