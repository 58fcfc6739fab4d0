/** What the server refused, or why it could not be reached. */
import { Problem, problemUrn } from "@rolldeck/contracts/api/problems";

/** An answer that is not 2xx. `problem.errors[].path` names the field. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  constructor(readonly problem: Problem) {
    const fields = (problem.errors ?? []).map(
      ({ path, message, fix }) => `${path}: ${message}${fix ? ` (${fix})` : ""}`,
    );
    super(fields.length > 0 ? fields.join("; ") : problem.detail);
  }
  get status(): number {
    return this.problem.status;
  }
}

/** The request got no answer: no server there, or the connection broke. Trying again may help. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
  constructor(
    readonly url: string,
    cause: unknown,
  ) {
    super(`${url} does not answer`, { cause });
  }
}

/** The problem of a failed answer; something between us and the server may have answered in its own way. */
export function problemOf(status: number, body: unknown): Problem {
  const parsed = Problem.safeParse(body);
  if (parsed.success) return parsed.data;
  return {
    type: problemUrn(status >= 500 ? "unavailable" : "bad-input"),
    title: `The server answered ${status}`,
    status,
    detail: `The server answered ${status} without a problem document.`,
    requestId: "none",
  };
}
