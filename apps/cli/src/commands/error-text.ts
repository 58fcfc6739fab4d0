/** What a failed command prints: what happened, then one line per field, then the request to quote. */
import { ApiProblem } from "@rolldeck/client/api-problem";
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";

const fieldLine = ({ path, message, fix }: InputIssue): string =>
  `${path || "(root)"}: ${message}${fix === undefined ? "" : ` — ${fix}`}`;

export function errorText(error: unknown): string {
  if (error instanceof InputError) return error.issues.map(fieldLine).join("\n");
  if (!(error instanceof ApiProblem)) return error instanceof Error ? error.message : String(error);
  const { problem } = error;
  const [first, ...others] = problem.errors ?? [];
  // The detail of a problem with one field says nothing that its line does not.
  if (first && others.length === 0) return `${fieldLine(first)}\n  request ${problem.requestId}`;
  const fields = (problem.errors ?? []).map((issue) => `  ${fieldLine(issue)}`);
  return [problem.detail, ...fields, `  request ${problem.requestId}`].join("\n");
}
