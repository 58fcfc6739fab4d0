/** Tokens that a judge read and wrote for a run's verifiers: a part of what the run cost. */
import type pg from "pg";

export async function addJudgeTokens(pool: pg.Pool, runId: string, tokens: number): Promise<void> {
  await pool.query("update runs set judge_tokens = judge_tokens + $2 where id = $1", [runId, Math.round(tokens)]);
}
