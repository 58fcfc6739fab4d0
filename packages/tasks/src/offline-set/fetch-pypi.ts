/** Two sdists of a PyPI package: the version with the bug, unpacked, and the files of the next one that fix and test it. */
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import type { FetchScene } from "./fetch-debian.ts";
import { runTool } from "./run-tool.ts";
import type { PypiSource } from "./set-list.ts";

/** @param into a folder that is not there yet. @returns what copies the fix and its tests into it */
export async function unpackPypi(
  source: PypiSource,
  into: string,
  scene: FetchScene,
): Promise<{ applyFix(): Promise<void> }> {
  await unpack(await download(source.pypi, source.version, scene), into, scene.signal);
  const fixed = `${into}-fixed`;
  await unpack(await download(source.pypi, source.fixedIn, scene), fixed, scene.signal);
  const files = [...source.fix, ...source.tests];
  for (const file of files) {
    if (existsSync(join(fixed, file))) continue;
    throw new InputError([{ path: "source", message: `${source.pypi} ${source.fixedIn} has no file ${file}` }]);
  }
  return {
    applyFix: async () => {
      for (const file of files) {
        await mkdir(dirname(join(into, file)), { recursive: true });
        await copyFile(join(fixed, file), join(into, file));
      }
      await rm(fixed, { recursive: true, force: true });
    },
  };
}

/** @returns path of the sdist, from the cache when it is there */
async function download(name: string, version: string, scene: FetchScene): Promise<string> {
  const folder = join(scene.cache, "pypi", `${name}-${version}`);
  const found = await archiveIn(folder);
  if (found !== null) return found;
  await mkdir(dirname(folder), { recursive: true });
  const fresh = await mkdtemp(`${folder}-`);
  try {
    const args = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, "--dest", fresh];
    await runTool("python3", [...args, `${name}==${version}`], { cwd: fresh, signal: scene.signal });
    await rm(folder, { recursive: true, force: true });
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  const archive = await archiveIn(folder);
  if (archive === null) {
    throw new InputError([{ path: "source", message: `${name} ${version} is not served as a .tar.gz of its sources` }]);
  }
  return archive;
}

async function archiveIn(folder: string): Promise<string | null> {
  if (!existsSync(folder)) return null;
  const name = (await readdir(folder)).find((each) => each.endsWith(".tar.gz"));
  return name === undefined ? null : join(folder, name);
}

/** The archive's one folder becomes `into`. */
async function unpack(archive: string, into: string, signal: AbortSignal): Promise<void> {
  await mkdir(into, { recursive: true });
  const args = ["-xzf", archive, "-C", into, "--strip-components=1", "--no-same-owner", "--no-same-permissions"];
  await runTool("tar", args, { cwd: into, signal });
}
