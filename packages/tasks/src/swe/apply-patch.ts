/**
 * A patch into a fresh repository, by the commands of the SWE-bench harness in their order. Invariants: its bytes go in as they
 * are; after an attempt that failed the repository is what it was.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { lastWords } from "../harbor/in-sandbox.ts";
import { rawAttributes, runInRepository } from "./in-repository.ts";

export interface Applied {
  /** The command that took it; null = none did. */
  readonly by: string | null;
  /** What the commands said. */
  readonly message: string;
}

const patchPath = "/var/tmp/rolldeck-agent.patch";

const commands = [
  { name: "git apply", line: 'g apply --verbose "$2"' },
  { name: "git apply --3way", line: 'g apply --verbose --3way "$2"' },
  { name: "git apply --reject", line: 'g apply --verbose --reject "$2"' },
  { name: "patch --fuzz=5", line: 'patch --batch --forward --fuzz=5 -p1 -i "$2"' },
] as const;

/** Exit codes: 20 and up name the command, 19 is none. */
const first = 20;
const none = 19;

/** @throws BoundaryError("verifier") when it can't be tried, BoundaryError("sandbox") */
export async function applyPatch(
  sandbox: Sandbox,
  patch: Uint8Array,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Applied> {
  const path = `${patchPath}${sandbox.workdir.replaceAll("/", "_")}`;
  await sandbox.writeFile(path, patch, {}, signal);
  const run = { script, arguments: [sandbox.workdir, path], timeoutMs };
  const result = await runInRepository(sandbox, run, signal);
  const message = lastWords(result);
  const by = commands[(result.exitCode ?? -1) - first]?.name;
  if (by !== undefined) return { by, message };
  if (result.exitCode === none) return { by: null, message };
  const how = result.timedOut ? `was not done after ${timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
  throw new BoundaryError("verifier", "patch_not_tried", `applying the patch ${how}: ${message}`, { retryable: true });
}

const attempts = commands.map(
  ({ line }, index) => `if ${line}; then leave ${first + index} "$2"; fi\ng reset -q --hard\ng clean -fdq`,
);

const script = `
cd "$1" || exit 3
attributes=$(g rev-parse --git-path info/attributes) || exit 3
mkdir -p "$(dirname "$attributes")"
cp "$attributes" "$home/attributes" 2>/dev/null || true
leave() {
  if [ -e "$home/attributes" ]; then cp "$home/attributes" "$attributes"; else rm -f "$attributes"; fi
  rm -f "$2"
  exit "$1"
}
printf '%s\\n' '${rawAttributes}' > "$attributes"
exec 2>&1
${attempts.join("\n")}
if g apply --check --reverse "$2"; then leave ${first} "$2"; fi
leave ${none} "$2"
`;
