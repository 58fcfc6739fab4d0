/** What a failed command prints: what happened, then one line per field, then the request to quote. */
import { ApiProblem } from "@rolldeck/client/api-problem";

export function errorText(error: unknown): string {
  if (!(error instanceof ApiProblem)) return error instanceof Error ? error.message : String(error);
  const { problem } = error;
  const fields = (problem.errors ?? []).map(
    ({ path, message, fix }) => `  ${path || "(root)"}: ${message}${fix === undefined ? "" : ` — ${fix}`}`,
  );
  return [problem.detail, ...fields, `  request ${problem.requestId}`].join("\n");
}
