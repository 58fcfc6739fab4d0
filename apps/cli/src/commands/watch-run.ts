/** Prints one line whenever a run moves, until it ends. Exit code 0 only when it completed. */
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { plain, significant } from "./output.ts";

const percent = (value: number | null): string => (value === null ? "n/a" : `${significant(value * 100)} %`);

function lineOf(run: RunDetail): string {
  if (run.status === "preparing" && run.boot !== null) {
    const amount =
      run.boot.done === null
        ? ""
        : ` ${significant(run.boot.done)}${run.boot.total === null ? "" : `/${significant(run.boot.total)}`} ${run.boot.unit ?? ""}`;
    return `${run.status}: ${run.boot.phase}: ${plain(run.boot.message)}${amount}`;
  }
  const reward = run.reward === null ? "n/a" : significant(run.reward);
  return `${run.status} step ${run.step}/${run.steps} reward ${reward} success ${percent(run.success)}${run.reason === null ? "" : ` (${plain(run.reason)})`}`;
}

export async function watchRun(rolldeck: Rolldeck, runId: string, json: boolean): Promise<void> {
  let last = "";
  for (;;) {
    const run = await rolldeck.getRun(runId);
    const line = lineOf(run);
    if (line !== last) {
      const value = {
        runId,
        status: run.status,
        step: run.step,
        steps: run.steps,
        reward: run.reward,
        success: run.success,
        reason: run.reason,
      };
      process.stdout.write(`${json ? JSON.stringify(value) : line}\n`);
    }
    last = line;
    if (endedRunStatuses.includes(run.status)) {
      if (run.preflight !== null)
        process.stdout.write(
          `${json ? JSON.stringify(run.preflight) : `${run.preflight.ok ? "ok" : "failed"}: ${run.preflight.text}`}\n`,
        );
      if (run.status !== "completed" || run.preflight?.ok === false) process.exitCode = 1;
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
