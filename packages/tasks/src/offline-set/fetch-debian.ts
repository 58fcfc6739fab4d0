/**
 * A Debian source package, unpacked up to just before one of its patches. Files come from a folder where they lie, else from
 * `apt-get source` with source lists of our own, made from the machine's binary ones: its own lists stay as they are.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { runTool } from "./run-tool.ts";
import type { DebianSource } from "./set-list.ts";

export interface FetchScene {
  /** Where downloads are kept between builds. */
  readonly cache: string;
  /** Folder of source packages that are already there; null = none. */
  readonly debianSources: string | null;
  readonly signal: AbortSignal;
}

/** @param into a folder that is not there yet. @returns what applies the fix to it */
export async function unpackDebian(
  source: DebianSource,
  into: string,
  scene: FetchScene,
): Promise<{ applyFix(): Promise<void> }> {
  const folder = await folderWithDsc(source, scene);
  const run = { cwd: folder, signal: scene.signal };
  await runTool("dpkg-source", ["--skip-patches", "--no-copy", "-x", dscName(source), into], run);
  const patches = join(into, "debian/patches");
  const series = readSeries(await readFile(join(patches, "series"), "utf8"));
  const at = series.findIndex((name) => name === source.fix || name === `${source.fix}.patch`);
  if (at < 0) {
    const message = `${source.debian} ${source.version} has no patch ${source.fix}: ${series.join(", ")}`;
    throw new InputError([{ path: "source.fix", message }]);
  }
  const texts: Buffer[] = [];
  for (const name of series.slice(0, at + 1)) texts.push(await readFile(join(patches, name)));
  const fix = texts.pop() ?? Buffer.alloc(0);
  const apply = async (stdin: Buffer): Promise<void> => {
    await runTool("patch", ["-p1", "--force", "--no-backup-if-mismatch", "--quiet"], {
      cwd: into,
      signal: scene.signal,
      stdin,
    });
  };
  for (const text of texts) await apply(text);
  // What the distribution added: the patches are in it, and so is the fix.
  await rm(join(into, "debian"), { recursive: true, force: true });
  await rm(join(into, ".pc"), { recursive: true, force: true });
  return { applyFix: () => apply(fix) };
}

/** Names of a series file, in order; comments and options of a patch are left out. */
export const readSeries = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*/, "").trim())
    .filter((line) => line !== "")
    .map((line) => line.split(/\s+/)[0] ?? "");

/** An epoch is no part of a file's name. */
const dscName = ({ debian, version }: DebianSource): string => `${debian}_${version.replace(/^\d+:/, "")}.dsc`;

async function folderWithDsc(source: DebianSource, scene: FetchScene): Promise<string> {
  if (scene.debianSources !== null && existsSync(join(scene.debianSources, dscName(source))))
    return scene.debianSources;
  const folder = join(scene.cache, "debian");
  await mkdir(folder, { recursive: true });
  if (existsSync(join(folder, dscName(source)))) return folder;
  const apt = await privateApt(scene);
  const wanted = `${source.debian}=${source.version}`;
  await runTool("apt-get", [...apt, "source", "--download-only", "--quiet=2", wanted], {
    cwd: folder,
    signal: scene.signal,
  });
  return folder;
}

/** Options of apt-get that make it use lists and folders of ours; the lists are read once a build. */
const lists = new Map<string, Promise<string[]>>();
function privateApt(scene: FetchScene): Promise<string[]> {
  const folder = join(scene.cache, "apt");
  const known = lists.get(folder);
  if (known !== undefined) return known;
  const made = updateLists(folder, scene.signal);
  lists.set(folder, made);
  made.catch(() => lists.delete(folder));
  return made;
}

async function updateLists(folder: string, signal: AbortSignal): Promise<string[]> {
  await mkdir(join(folder, "lists/partial"), { recursive: true });
  await mkdir(join(folder, "cache/archives/partial"), { recursive: true });
  const run = { cwd: folder, signal };
  const format = "$(ORIGIN)|deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)";
  const targets = await runTool("apt-get", ["indextargets", "--format", format, "Created-By: Packages"], run);
  const lines = targets
    .toString()
    .split("\n")
    .filter((line) => line.startsWith("Debian|"));
  const list = join(folder, "sources.list");
  await writeFile(list, `${[...new Set(lines.map((line) => line.slice(line.indexOf("|") + 1)))].join("\n")}\n`);
  const options = [
    ["Dir::Etc::sourcelist", list],
    ["Dir::Etc::sourceparts", "-"],
    ["Dir::State::lists", join(folder, "lists")],
    ["Dir::Cache", join(folder, "cache")],
    // Downloads go to a folder that only the caller may enter.
    ["APT::Sandbox::User", "root"],
  ].flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await runTool("apt-get", [...options, "update", "--quiet=2"], run);
  return options;
}
