/**
 * Before tests run: what the agent did to test files, and what it put in the runner's place, is as it was in the image. Invariant:
 * other files stay byte for byte as the patch made them.
 */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { type ChangedFile, isRunnerFile, isTestFile } from "./changed-files.ts";
import { mustRun } from "./in-repository.ts";

const maxListed = 16 * 1024 * 1024;

/** @returns all files that differ from the base @throws BoundaryError("verifier") */
export async function restoreTests(
  sandbox: Sandbox,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly ChangedFile[]> {
  const run = { arguments: [sandbox.workdir], timeoutMs, boundary: "verifier" } as const;
  const what = "listing what the patch changed";
  const listed = await mustRun(sandbox, { ...run, script: listing, what, maxOutputBytes: maxListed }, signal);
  const changed = parseStatus(Buffer.from(listed.stdout.head).toString("utf8"));
  const theirs = changed.filter(({ path }) => isTestFile(path) || isRunnerFile(path));
  if (theirs.length === 0) return changed;
  const list = `/var/tmp/rolldeck-restore${sandbox.workdir.replaceAll("/", "_")}`;
  const lines = theirs.map(({ path, change }) => `${change === "added" ? "-" : "+"}${path}\0`);
  await sandbox.writeFile(list, Buffer.from(lines.join("")), {}, signal);
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
g status --porcelain=v1 -z --untracked-files=all --no-renames --ignore-submodules=all
`;

const restoring = `
cd "$1" || exit 3
tr '\\0' '\\n' < "$2" | sed -n 's/^+//p' > "$home/known"
tr '\\0' '\\n' < "$2" | sed -n 's/^-//p' | while IFS= read -r path; do rm -rf -- "./$path"; done
if [ -s "$home/known" ]; then
  while IFS= read -r path; do rm -rf -- "./$path"; done < "$home/known"
  tr '\\n' '\\0' < "$home/known" | GIT_LITERAL_PATHSPECS=1 xargs -0 -n 200 git -c safe.directory='*' -c core.hooksPath=/dev/null checkout -q HEAD -- || exit 3
fi
rm -f "$2"
`;

/** `XY path` and a zero; renames are not asked for. */
function parseStatus(text: string): ChangedFile[] {
  return text.split("\0").flatMap((entry) => {
    if (entry.length < 4) return [];
    const code = entry.slice(0, 2);
    const change = code === "??" ? "added" : code.includes("D") ? "deleted" : "modified";
    return [{ path: entry.slice(3), change } as const];
  });
}
