/** The true fix of a row, in the agent's own sandbox: what a data set is checked with. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import { applyPatch } from "./apply-patch.ts";
import { isTestFile } from "./changed-files.ts";
import { mustRun } from "./in-repository.ts";
import type { SweRow } from "./row.ts";

type SolvedRow = Pick<SweRow, "kind" | "instanceId" | "patch" | "commitContent">;

/** @throws BoundaryError("verifier", "no_solution") for a row that has none, "solution_failed" for one whose own does not apply */
export async function solveSwe(
  row: SolvedRow,
  sandbox: Sandbox,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (row.kind === "r2e-gym") return writeFixed(row, sandbox, signal);
  if (row.patch === null || row.patch === "") throw noSolution(row, "has no patch");
  if (row.kind === "swe-smith") return takeBack(row.patch, sandbox, timeoutMs, signal);
  const { by, message } = await applyPatch(sandbox, Buffer.from(row.patch), timeoutMs, signal);
  if (by === null) throw badSolution(row, `has a patch that does not apply: ${message}`);
}

const noSolution = ({ instanceId }: SolvedRow, why: string): BoundaryError =>
  new BoundaryError("verifier", "no_solution", `${instanceId} ${why}`);
const badSolution = ({ instanceId }: SolvedRow, why: string): BoundaryError =>
  new BoundaryError("verifier", "solution_failed", `${instanceId} ${why}`);

/** SWE-smith's patch made the bug. */
async function takeBack(patch: string, sandbox: Sandbox, timeoutMs: number, signal: AbortSignal): Promise<void> {
  const path = "/var/tmp/rolldeck-fix.patch";
  await sandbox.writeFile(path, Buffer.from(patch), {}, signal);
  const script = `cd "$1" && g apply --reverse ${path} && rm -f ${path}`;
  const what = "taking the row's patch back";
  await mustRun(sandbox, { script, arguments: [sandbox.workdir], timeoutMs, what, boundary: "verifier" }, signal);
}

/** R2E-Gym has the files of the fix as they were before and after. */
const CommitContent = z.object({
  file_diffs: z.array(
    z.object({
      header: z.object({ file: z.object({ path: z.string() }) }),
      new_file_content: z.string().nullish(),
    }),
  ),
});

/** Files that R2E-Gym's fix changed; none where that can't be read. @param commitContent JSON of a row */
export function filesOfCommit(commitContent: string | null): string[] {
  if (commitContent === null) return [];
  try {
    const parsed = CommitContent.safeParse(JSON.parse(commitContent));
    return (parsed.data?.file_diffs ?? []).map(({ header }) => header.file.path);
  } catch (cause) {
    if (cause instanceof SyntaxError) return [];
    throw cause;
  }
}

async function writeFixed(row: SolvedRow, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  if (row.commitContent === null) throw noSolution(row, "has no parsed_commit_content");
  const parsed = CommitContent.safeParse(JSON.parse(row.commitContent));
  if (!parsed.success) throw badSolution(row, "has a parsed_commit_content of another shape");
  for (const { header, new_file_content: content } of parsed.data.file_diffs) {
    const { path } = header.file;
    if (!path.endsWith(".py") || isTestFile(path) || content == null) continue;
    await sandbox.writeFile(`${sandbox.workdir}/${path}`, Buffer.from(content), {}, signal);
  }
}
