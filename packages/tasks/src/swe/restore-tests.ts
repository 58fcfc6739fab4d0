/**
 * Before tests run: what the agent did to test files, to the runner that the repository brings, and what it put in the runner's
 * place, is as it was in the image. Invariant: other files stay byte for byte as the patch made them.
 */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { type ChangedFile, type GradedRepository, roleOf } from "./changed-files.ts";
import { mustRun } from "./in-repository.ts";

const maxListed = 16 * 1024 * 1024;

/** @returns all files that differ from the base @throws BoundaryError("verifier") */
export async function restoreTests(
  sandbox: Sandbox,
  repository: Omit<GradedRepository, "baseNames">,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly ChangedFile[]> {
  const run = { arguments: [sandbox.workdir], timeoutMs, boundary: "verifier" } as const;
  const what = "listing what the patch changed";
  const listed = await mustRun(sandbox, { ...run, script: listing, what, maxOutputBytes: maxListed }, signal);
  const changed = changedFiles(Buffer.from(listed.stdout.head).toString("utf8"), repository);
  const theirs = changed.filter(({ role }) => role !== null);
  if (theirs.length === 0) return changed;
  const list = `/var/tmp/rolldeck-restore${sandbox.workdir.replaceAll("/", "_")}`;
  const known = theirs.filter(({ change }) => change !== "added");
  await sandbox.writeFile(`${list}-all`, namesOf(theirs), {}, signal);
  await sandbox.writeFile(`${list}-known`, namesOf(known), {}, signal);
  await mustRun(
    sandbox,
    { ...run, arguments: [sandbox.workdir, list], script: restoring, what: "putting tests back" },
    signal,
  );
  return changed;
}

const listing = `
cd "$1" || exit 3
g reset -q || exit 3
g ls-tree -z --name-only HEAD && g ls-tree -z --name-only HEAD src/ && printf '\\0' || exit 3
g status --porcelain=v1 -z --untracked-files=all --no-renames --ignore-submodules=all
`;

/** Names may hold line ends: each is ended by a zero. */
const namesOf = (files: readonly ChangedFile[]): Uint8Array =>
  Buffer.from(files.map(({ path }) => `./${path}\0`).join(""));

const restoring = `
cd "$1" || exit 3
xargs -0 -n 200 rm -rf -- < "$2-all" || exit 3
if [ -s "$2-known" ]; then
  GIT_LITERAL_PATHSPECS=1 xargs -0 -n 200 git -c safe.directory='*' -c core.hooksPath=/dev/null checkout -q HEAD -- < "$2-known" || exit 3
fi
rm -f "$2-all" "$2-known"
`;

/** Names of the base, an empty one, then `XY path` of each change, all ended by zeros; renames are not asked for. */
function changedFiles(text: string, repository: Omit<GradedRepository, "baseNames">): ChangedFile[] {
  const parts = text.split("\0");
  const border = parts.indexOf("");
  const whole = { ...repository, baseNames: new Set(parts.slice(0, border)) };
  return parts.slice(border + 1).flatMap((entry) => {
    if (entry.length < 4) return [];
    const code = entry.slice(0, 2);
    const path = entry.slice(3);
    const change = code === "??" ? "added" : code.includes("D") ? "deleted" : "modified";
    return [{ path, change, role: roleOf(path, whole) } as const];
  });
}
