/**
 * What the agent changed, as bytes of a git patch. Invariants: nothing is trimmed, decoded or cut; it is compared with the copy of
 * the beginning, so that commits, settings, hooks and attributes of the agent change nothing; it is tried on that beginning before
 * it is handed on.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { tailWithin } from "@rolldeck/agent/core/cut-text";
import { artifactNames, maxEvidenceBytes } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { maxPatchBytes, PatchState } from "@rolldeck/contracts/patch-state";
import { type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import type { NewEvidence } from "@rolldeck/contracts/ports/task";
import { lastWords, textOf } from "../harbor/in-sandbox.ts";
import { runInRepository } from "./in-repository.ts";
import { copyFolder } from "./set-up.ts";

/** Of a larger patch this much is read, to be kept packed for whoever downloads it. */
const maxWholeBytes = 32 * 1024 * 1024;
const pack = promisify(gzip);

/** Exit codes of the script that are no failure. */
const noBase = 10;
const tooLarge = 11;

/** @throws BoundaryError("sandbox") when it can't be collected */
export async function collectPatch(
  sandbox: Sandbox,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly NewEvidence[]> {
  // Whatever still runs would change files between one look and the next.
  await sandbox.killAll(signal);
  const result = await runInRepository(
    sandbox,
    {
      script,
      arguments: [sandbox.workdir, copyFolder(sandbox.workdir), String(maxPatchBytes)],
      timeoutMs,
      maxOutputBytes: maxPatchBytes + 1024,
    },
    signal,
  );
  const notes = tailWithin(textOf(result.stderr), 2000);
  if (result.exitCode === noBase) return [stateOf({ version: 1, state: "no_base", bytes: 0, notes })];
  if (result.exitCode === 126 || result.exitCode === 127) {
    return [stateOf({ version: 1, state: "broken", bytes: 0, notes })];
  }
  if (result.exitCode === tooLarge) {
    const bytes = Number(new TextDecoder().decode(result.stdout.head).trim());
    const state = stateOf({ version: 1, state: "too_large", bytes: Number.isSafeInteger(bytes) ? bytes : 0, notes });
    return [...(await wholePatch(sandbox, signal)), state];
  }
  if (result.exitCode !== 0 || result.stdout.gapBytes > 0) {
    const how = result.timedOut ? `was not done after ${timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
    throw new BoundaryError(
      "sandbox",
      "not_collected",
      `collecting the patch ${how}: ${lastWords({ ...result, stdout: result.stderr })}`,
    );
  }
  const content = Uint8Array.from(result.stdout.head);
  return [
    { name: artifactNames.patch, mediaType: "text/x-diff", content },
    stateOf({ version: 1, state: "collected", bytes: content.length, notes }),
  ];
}

/** For people alone: one that is larger still, or can't be read, is only told. @throws BoundaryError("sandbox") */
async function wholePatch(sandbox: Sandbox, signal: AbortSignal): Promise<readonly NewEvidence[]> {
  try {
    const patch = await sandbox.readFile(`${copyFolder(sandbox.workdir)}/patch`, { maxBytes: maxWholeBytes }, signal);
    const content = await pack(patch);
    if (content.length > maxEvidenceBytes) return [];
    return [{ name: artifactNames.wholePatch, mediaType: "application/gzip", content }];
  } catch (error) {
    if (error instanceof SandboxFileError) return [];
    throw error;
  }
}

const stateOf = (state: PatchState): NewEvidence => ({
  name: artifactNames.patchState,
  mediaType: "application/json",
  content: new TextEncoder().encode(JSON.stringify(PatchState.parse(state))),
});

/**
 * The index keeps its time: by it git knows of which files it has to look into the bytes. Files that can't be read stay as they were, and git says so. Submodules and repositories inside are left out. Applied to the
 * beginning, the patch has to give what was found.
 */
const script = `
export GIT_DIR="$2" GIT_WORK_TREE="$1" GIT_INDEX_FILE="$2/collect.index"
[ -d "$2" ] && [ -d "$1" ] && g cat-file -e 'refs/heads/base^{tree}' 2>/dev/null || exit ${noBase}
cd "$1" || exit 3
cp -p "$2/base.index" "$2/collect.index" 2>/dev/null || g read-tree refs/heads/base || exit 3
g add -A --ignore-errors . || true
g diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames --no-relative --unified=3 \\
  --inter-hunk-context=0 --diff-algorithm=myers --src-prefix=a/ --dst-prefix=b/ --ignore-submodules=all \\
  refs/heads/base > "$2/patch" || fail "the patch can't be made"
size=$(wc -c < "$2/patch")
if [ "$size" -gt "$3" ]; then printf '%s\\n' "$size"; exit ${tooLarge}; fi
if [ "$size" -gt 0 ]; then
  export GIT_INDEX_FILE="$2/check.index"
  g read-tree refs/heads/base && g apply --cached "$2/patch" || fail "the patch does not apply to its own beginning"
  GIT_INDEX_FILE="$2/collect.index" g diff --quiet --cached --ignore-submodules=all "$(g write-tree)" || fail "the patch does not give what was found"
fi
cat "$2/patch"
`;
