/**
 * Debian source packages as they were before each of their patches. Found in a folder, or fetched by apt with lists of its own, so
 * that the machine's stay as they are.
 */
import { type ExecFileSyncOptions, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const mirror = "http://deb.debian.org/debian";
const security = "http://deb.debian.org/debian-security";

/** Packages of bookworm whose patches change Python functions. */
export const sourcePackages = ["jinja2", "python-django", "python-h11"] as const;

/** The packages' `.dsc` files. @param given folder that holds them, or null */
export function sourceFiles(given: string | null, workFolder: string, progress: (line: string) => void): string[] {
  const folder = given ?? download(workFolder, progress);
  return sourcePackages.map((name) => {
    const found = readdirSync(folder).filter((file) => file.startsWith(`${name}_`) && file.endsWith(".dsc"));
    const newest = found.sort().at(-1);
    if (newest === undefined) throw new Error(`no source of ${name} in ${folder}`);
    return path.join(folder, newest);
  });
}

function download(workFolder: string, progress: (line: string) => void): string {
  const lists = path.join(workFolder, "apt");
  const folder = path.join(workFolder, "sources");
  for (const one of [path.join(lists, "partial"), path.join(lists, "cache/archives/partial"), folder]) {
    mkdirSync(one, { recursive: true });
  }
  const sourceList = path.join(lists, "sources.list");
  writeFileSync(sourceList, `deb-src ${mirror} bookworm main\ndeb-src ${security} bookworm-security main\n`);
  const options = [
    ["Dir::Etc::sourcelist", sourceList],
    ["Dir::Etc::sourceparts", "/dev/null"],
    ["Dir::State::lists", lists],
    ["Dir::Cache", path.join(lists, "cache")],
    ["APT::Sandbox::User", ""],
  ].flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const quiet: ExecFileSyncOptions = { cwd: folder, stdio: ["ignore", "ignore", "inherit"] };
  progress("apt-get update (own lists)");
  execFileSync("apt-get", [...options, "update"], quiet);
  for (const name of sourcePackages) {
    progress(`apt-get source ${name}`);
    execFileSync("apt-get", [...options, "source", "--download-only", name], quiet);
  }
  return folder;
}

/** Unpacks without applying the patches. @returns the tree and its patches in order */
export function unpack(dsc: string, target: string): { readonly tree: string; readonly patches: readonly string[] } {
  execFileSync("dpkg-source", ["--no-check", "--skip-patches", "-x", dsc, target], { stdio: "ignore" });
  const folder = path.join(target, "debian/patches");
  const series = path.join(folder, "series");
  if (!existsSync(series)) return { tree: target, patches: [] };
  const names = readFileSync(series, "utf8")
    .split("\n")
    .map(
      (line) =>
        line
          .replace(/(^|\s)#.*$/, "")
          .trim()
          .split(/\s+/)[0] ?? "",
    )
    .filter((name) => name !== "");
  return { tree: target, patches: names.map((name) => path.join(folder, name)) };
}

/** Changes the tree. @throws when the patch does not apply */
export function applyPatch(tree: string, patch: string): void {
  execFileSync("patch", ["-p1", "--batch", "--forward", "--silent", "--no-backup-if-mismatch", "-i", patch], {
    cwd: tree,
    stdio: "ignore",
  });
}
