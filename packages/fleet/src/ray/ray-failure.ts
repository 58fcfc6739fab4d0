/**
 * What Ray refused or failed to do, by what can be done about it. Invariant: nothing of a request is repeated in the words of a
 * failure, for its environment may hold keys; of an answer, one line.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";

/**
 * `unavailable`: no answer, try again. `unauthorized`: the token. `no-job`, `job-exists`, `still-running`: the job is not as the call
 * needs it. `refused`: what was asked for is wrong. `failed`: Ray could not do it. `strange-answer`: it is no Ray.
 */
export type RayFailureCode =
  | "unavailable"
  | "unauthorized"
  | "no-job"
  | "job-exists"
  | "still-running"
  | "refused"
  | "failed"
  | "strange-answer";

export class RayFailure extends BoundaryError {
  override readonly name = "RayFailure";
  constructor(
    override readonly code: RayFailureCode,
    message: string,
    cause?: unknown,
  ) {
    super("infrastructure", code, message, { cause, retryable: code === "unavailable" });
  }
}

/** Of an answer that is not 2xx. Ray tells most of its failures as Python's traceback, with 400 or 500. @param what `submitting job j1` */
export function failureOfAnswer(what: string, status: number, body: string): RayFailure {
  const told = toldBy(body);
  const words = `${what}: Ray answers ${status}${told === "" ? "" : `: ${told}`}`;
  if (status === 401 || status === 403)
    return new RayFailure("unauthorized", `${words}; set its token (\`ray get-auth-token\` prints it)`);
  if (/\balready exists\b/.test(told)) return new RayFailure("job-exists", words);
  if (/\bnon-terminal state\b/.test(told)) return new RayFailure("still-running", words);
  if (status < 400) return new RayFailure("strange-answer", `${words}; give the address that it leads to`);
  if (status === 404) return new RayFailure(/\bdoes not exist\b/.test(told) ? "no-job" : "strange-answer", words);
  // A proxy before it, or a head node that is starting.
  if (/No available agent/.test(told) || [429, 502, 503, 504].includes(status))
    return new RayFailure("unavailable", words);
  return new RayFailure(status < 500 ? "refused" : "failed", words);
}

/** The last exception of a traceback, or the first line of anything else. */
function toldBy(body: string): string {
  const lines = body.split("\n").map((line) => line.trim());
  const exception = lines.findLast((line) => /^[\w.]*(Error|Exception)\b.*: \S/.test(line));
  return (exception ?? lines.find((line) => line !== "") ?? "").slice(0, 400);
}
