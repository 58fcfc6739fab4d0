/**
 * The image under all tasks of the offline set: Debian with Python, git, pytest and what the packages under test import; never those
 * packages themselves, for an installed copy gives the fix away. Made by debootstrap, since no registry of images is needed then.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTool } from "@rolldeck/tasks/offline-set/run-tool";
import { CommandFailure } from "../commands/command-failure.ts";
import type { DockerImages } from "./docker-images.ts";

export const baseImage = "rolldeck-swe-base:bookworm";

/** Package lists, manuals and translations: half of the size. */
const unneeded = [
  "var/cache/apt",
  "var/lib/apt/lists",
  "usr/share/doc",
  "usr/share/man",
  "usr/share/locale",
  "usr/share/info",
];

/** @param packagesFile one Debian package a line (infra/swe-set/base-packages.txt) */
export async function ensureBaseImage(
  images: DockerImages,
  options: { readonly packagesFile: string; readonly say: (line: string) => void; readonly signal: AbortSignal },
): Promise<void> {
  if ((await images.idOf(baseImage)) !== null) return;
  const debootstrap = ["/usr/sbin/debootstrap", "/usr/bin/debootstrap"].find((file) => existsSync(file));
  if (debootstrap === undefined || process.getuid?.() !== 0) {
    throw new CommandFailure(
      `there is no image ${baseImage}. Making it here needs root and debootstrap (sudo apt-get install -y debootstrap); with a ` +
        `registry: docker build -t ${baseImage} infra/swe-set`,
    );
  }
  options.say(`making ${baseImage} with debootstrap (about a minute, once)`);
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-swe-base-"));
  try {
    const root = join(folder, "root");
    const run = { cwd: folder, signal: options.signal };
    const packages = readPackages(await readFile(options.packagesFile, "utf8"));
    await runTool(debootstrap, ["--variant=minbase", `--include=${packages.join(",")}`, "bookworm", root], run);
    for (const each of unneeded) await rm(join(root, each), { recursive: true, force: true });
    await writeFile(join(root, "etc/hosts"), "127.0.0.1\tlocalhost\n::1\tlocalhost\n");
    const archive = join(folder, "base.tar");
    await runTool("tar", ["-C", root, "--numeric-owner", "-cf", archive, "."], run);
    await images.importArchive(archive, baseImage);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Names of a file with one a line; what follows # is a comment. */
export const readPackages = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
