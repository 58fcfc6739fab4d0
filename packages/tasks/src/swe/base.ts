/**
 * The state that an agent's work begins from, made of an image in the same way for the agent and for grading, so that a patch
 * between the agent's beginning and its end always fits the other. Invariant: after it, the repository is clean and its HEAD has
 * all that the image's work tree had.
 */
import type { Boundary } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { quoted, smithTestFiles } from "./eval-script.ts";
import { mustRun } from "./in-repository.ts";
import type { SweRow } from "./row.ts";

export type BaseRow = Pick<SweRow, "kind" | "baseCommit" | "patch" | "failToPass">;

/** What images hold for their own graders. */
const graderFiles = [
  "/eval.sh",
  "/run_tests.sh",
  "/run_tests_regression.sh",
  "/r2e_tests",
  "/root/r2e_tests",
  "/root/run_tests.sh",
];
const graderFilesHere = ["r2e_tests", "run_tests.sh"];

const bugPatchPath = "/var/tmp/rolldeck-bug.patch";

export interface BaseRequest {
  /** An agent's: without the files of graders. */
  readonly forAgent: boolean;
  readonly timeoutMs: number;
  readonly boundary: Boundary;
}

/** @throws BoundaryError at `boundary` that says what was seen */
export async function makeBase(
  row: BaseRow,
  sandbox: Sandbox,
  { forAgent, timeoutMs, boundary }: BaseRequest,
  signal: AbortSignal,
): Promise<void> {
  if (row.kind === "swe-smith") await sandbox.writeFile(bugPatchPath, Buffer.from(row.patch ?? ""), {}, signal);
  const script = [checkOut, forAgent ? withoutGraders(row) : "", bugOf(row), commitRest].join("\n");
  await mustRun(
    sandbox,
    {
      script,
      arguments: [sandbox.workdir, row.baseCommit ?? ""],
      timeoutMs,
      what: "making the repository ready",
      boundary,
    },
    signal,
  );
}

/** An image may have a commit of its own making on top of the row's; anything else that is not the row's is later history. */
const checkOut = `
cd "$1" || fail "there is no folder $1"
[ -e .git ] || fail "there is no git repository in $1"
head=$(g rev-parse -q --verify 'HEAD^{commit}') || fail "the repository in $1 has no commit"
if [ -n "$2" ]; then
  want=$(g rev-parse -q --verify "$2^{commit}") || fail "the repository in $1 has no commit $2"
  under=$(g rev-parse -q --verify 'HEAD^' || true)
  if [ "$head" != "$want" ] && { [ "$under" != "$want" ] || [ "$(g log -1 --format=%s)" != SWE-bench ]; }; then
    g checkout -q -f --detach "$want" || fail "commit $2 can't be checked out"
    g clean -fdq || fail "what lies beside commit $2 can't be removed"
  fi
fi
`;

const withoutGraders = ({ kind }: BaseRow): string =>
  [
    `rm -rf -- ${graderFiles.join(" ")} || fail "files of graders can't be removed"`,
    kind === "r2e-gym" ? `rm -rf -- ${graderFilesHere.join(" ")} || fail "files of graders can't be removed"` : "",
  ].join("\n");

/** SWE-smith's images hold the right code: the row's patch makes the bug, and the tests that show it are taken away. */
function bugOf({ kind, failToPass }: BaseRow): string {
  if (kind === "r2e-gym") return `printf '/.venv\\n/.venv/\\n' >> "$(g rev-parse --git-path info/exclude)"`;
  if (kind !== "swe-smith") return "";
  const files = smithTestFiles(failToPass).map(quoted).join(" ");
  return `
g apply ${bugPatchPath} || fail "the row's patch, which makes the bug, does not apply"
rm -f ${bugPatchPath}
rm -f -- ${files}
`;
}

const commitRest = `
if [ -n "$(g status --porcelain --ignore-submodules=all | head -c 1)" ]; then
  g add -A --ignore-errors . || true
  # As old as what it stands on: a log shows it on top.
  GIT_AUTHOR_DATE=$(g log -1 --format=%cI)
  GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
  g commit -q --allow-empty -m base || fail "the image's own changes can't be committed"
fi
`;
