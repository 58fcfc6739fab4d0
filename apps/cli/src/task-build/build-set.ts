/**
 * Builds the offline SWE set: for every entry of the list its repository, image, lists of tests, Harbor directory and row. Invariant:
 * a folder and a row are written only for a task that was verified; tasks that can't be built are told, the others stand.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { dockerfile, type HarborFile, harborFiles, repositoryArchive } from "@rolldeck/tasks/offline-set/harbor-files";
import { type PreparedTask, prepareTask } from "@rolldeck/tasks/offline-set/prepare-task";
import { ignoredFiles } from "@rolldeck/tasks/offline-set/repository";
import { runTool } from "@rolldeck/tasks/offline-set/run-tool";
import type { OfflineEntry } from "@rolldeck/tasks/offline-set/set-list";
import { type SweRow, sweRow } from "@rolldeck/tasks/offline-set/swe-row";
import type { DockerImages } from "./docker-images.ts";
import { verifyTask } from "./verify-task.ts";

export interface BuildScene {
  /** `evaluate.jsonl` and `harbor/` go here. */
  readonly out: string;
  /** Downloads and work in progress; may be kept between builds. */
  readonly cache: string;
  readonly debianSources: string | null;
  readonly images: DockerImages;
  readonly runtime: SandboxRuntime;
  readonly base: string;
  readonly gradeScript: string;
  readonly runs: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface BuiltTask {
  readonly id: string;
  readonly image: string;
  readonly baseCommit: string;
  readonly failToPass: number;
  readonly passToPass: number;
  readonly dropped: number;
  readonly testMs: number;
}
export interface BuildReport {
  readonly built: readonly BuiltTask[];
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
}

/** Rows of tasks that are not among the entries stay as they are. */
export async function buildSet(entries: readonly OfflineEntry[], scene: BuildScene): Promise<BuildReport> {
  const built: BuiltTask[] = [];
  const failed: { id: string; reason: string }[] = [];
  const rows = await readRows(scene.out);
  for (const [at, entry] of entries.entries()) {
    const label = `${entry.id} (${at + 1} of ${entries.length})`;
    try {
      const { task, row } = await buildTask(entry, scene);
      rows.set(entry.id, row);
      built.push(task);
      const { failToPass, passToPass, dropped, testMs } = task;
      const counts = `${failToPass} to turn, ${passToPass} to keep, ${dropped} left out`;
      scene.say(`${label}: ${counts}, tests ${(testMs / 1000).toFixed(1)} s`);
    } catch (error) {
      scene.signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      failed.push({ id: entry.id, reason });
      scene.say(`${label}: not built: ${reason}`);
    }
  }
  await writeRows(scene.out, rows);
  return { built, failed };
}

async function buildTask(entry: OfflineEntry, scene: BuildScene): Promise<{ task: BuiltTask; row: SweRow }> {
  const work = join(scene.cache, "work", entry.id);
  const prepared = await prepareTask(entry, join(work, "repository"), scene);
  const context = join(work, "environment");
  const image = await makeImage(prepared, context, scene);
  const { gradeScript, base, runtime, runs, signal } = scene;
  const harbor = (tests: Parameters<typeof harborFiles>[1]) =>
    harborFiles(prepared, tests, { image, base, gradeScript });
  const { tests, testMs } = await verifyTask(prepared, { runtime, image, runs, harbor, signal });
  await writeHarbor(join(scene.out, "harbor", entry.id), harbor(tests), join(context, repositoryArchive));
  await rm(work, { recursive: true, force: true });
  const task: BuiltTask = {
    id: entry.id,
    image,
    baseCommit: prepared.baseCommit,
    failToPass: tests.failToPass.length,
    passToPass: tests.passToPass.length,
    dropped: tests.dropped.length,
    testMs,
  };
  return { task, row: sweRow(prepared, tests, image) };
}

/** The image of a task is named after what is in it; one that is there is used. */
async function makeImage(task: PreparedTask, context: string, { images, base, signal }: BuildScene): Promise<string> {
  await mkdir(context, { recursive: true });
  const archive = join(context, repositoryArchive);
  const same = ["--sort=name", "--mtime=2000-01-01T00:00:00Z", "--owner=0", "--group=0", "--numeric-owner"];
  await runTool("tar", [...same, "--mode=u+rw,go+r,go-w,a+X", "-C", task.folder, "-cf", archive, "."], {
    cwd: context,
    signal,
  });
  const text = dockerfile(base);
  await writeFile(join(context, "Dockerfile"), text);
  const content = JSON.stringify([task.baseCommit, ignoredFiles, text, await images.idOf(base)]);
  const name = `rolldeck-swe/${task.entry.id}:${createHash("sha256").update(content).digest("hex").slice(0, 12)}`;
  if ((await images.idOf(name)) === null) await images.build(context, name, signal);
  return name;
}

/** Written beside and renamed: a folder that is there is whole. */
async function writeHarbor(folder: string, files: readonly HarborFile[], archive: string): Promise<void> {
  const part = `${folder}.part`;
  await rm(part, { recursive: true, force: true });
  for (const { path, text, executable } of files) {
    const file = join(part, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { mode: executable ? 0o755 : 0o644 });
  }
  await rename(archive, join(part, "environment", repositoryArchive));
  await rm(folder, { recursive: true, force: true });
  await rename(part, folder);
}

const rowsFile = "evaluate.jsonl";

async function readRows(out: string): Promise<Map<string, unknown>> {
  const rows = new Map<string, unknown>();
  const text = await readFile(join(out, rowsFile), "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const row: unknown = JSON.parse(line);
    if (typeof row === "object" && row !== null && "instance_id" in row) rows.set(String(row.instance_id), row);
  }
  return rows;
}

async function writeRows(out: string, rows: ReadonlyMap<string, unknown>): Promise<void> {
  await mkdir(out, { recursive: true });
  const lines = [...rows.keys()].sort().map((id) => `${JSON.stringify(rows.get(id))}\n`);
  const part = join(out, `${rowsFile}.part`);
  await writeFile(part, lines.join(""));
  await rename(part, join(out, rowsFile));
}
