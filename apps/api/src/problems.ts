/**
 * Every error that leaves the API is a Problem (RFC 9457) with a stable `type`, the path of the field and the request's id.
 * Invariants: only our own faults are 5xx, and those never quote their cause to the caller; a password that came in an address
 * does not go back, whatever field it was typed into.
 */
import { type Problem, type ProblemType, problemTypes, problemUrn } from "@rolldeck/contracts/api/problems";
import { ConflictError, InputError, type InputIssue, NotFoundError, TooLargeError } from "@rolldeck/contracts/errors";
import { ZodError, type z } from "zod";
import { withoutCredentials } from "./without-credentials.ts";

/** Thrown where the API itself refuses (auth, method, size …). */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  constructor(
    readonly problem: ProblemType,
    detail: string,
    readonly options: { readonly issues?: readonly InputIssue[]; readonly cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
  }
}

const titles: Record<ProblemType, string> = {
  "bad-input": "The request has fields that are not valid",
  "bad-json": "The body is not valid",
  "not-signed-in": "Sign in first",
  "not-allowed": "This token may not do that",
  "foreign-origin": "The request comes from a place this server does not trust",
  "not-found": "Not found",
  "bad-method": "Method not allowed",
  conflict: "The present state does not allow that",
  "fleet-worker-needed": "A worker of the fleet has to be there first",
  "idempotency-mismatch": "The Idempotency-Key was used with another request",
  "idempotency-in-flight": "The first request with this Idempotency-Key is still in flight",
  "too-large": "Too large",
  "bad-media-type": "Media type not supported",
  "too-many": "Too many requests",
  internal: "Internal error",
  unavailable: "Not available at the moment",
};

/** `["taskSets", 0, "weight"]` → `taskSets[0].weight`. */
export const fieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${String(part)}` : String(part)),
    "",
  );

export const zodIssues = (error: ZodError): InputIssue[] =>
  error.issues
    .slice(0, 50)
    .flatMap((issue): InputIssue[] =>
      issue.code === "unrecognized_keys"
        ? issue.keys
            .slice(0, 20)
            .map((key) => ({ path: fieldPath([...issue.path, key.slice(0, 100)]), message: "unknown key" }))
        : [{ path: fieldPath(issue.path), message: isMissing(issue) ? "is required" : issue.message }],
    );

/** The values themselves are not in the issue: they may be secrets. */
const isMissing = (issue: z.core.$ZodIssue): boolean =>
  issue.code === "invalid_type" && issue.message.endsWith("received undefined");

const build = (type: ProblemType, detail: string, requestId: string, issues?: readonly InputIssue[]): Problem => ({
  type: problemUrn(type),
  title: titles[type],
  status: problemTypes[type],
  detail: withoutCredentials(detail),
  requestId,
  ...(issues ? { errors: issues.map(shown) } : {}),
});

const shown = ({ path, message, fix }: InputIssue): InputIssue => ({
  path: withoutCredentials(path),
  message: withoutCredentials(message),
  ...(fix === undefined ? {} : { fix: withoutCredentials(fix) }),
});

const summary = (issues: readonly InputIssue[]): string =>
  issues
    .slice(0, 3)
    .map((issue) => `${issue.path || "(root)"}: ${issue.message}`)
    .join("; ");

/** The problem for any thrown value. */
export function toProblem(error: unknown, requestId: string): Problem {
  if (error instanceof ProblemError) return build(error.problem, error.message, requestId, error.options.issues);
  if (error instanceof ZodError) {
    const issues = zodIssues(error);
    return build("bad-input", summary(issues), requestId, issues);
  }
  if (error instanceof InputError) return build("bad-input", summary(error.issues), requestId, error.issues);
  if (error instanceof NotFoundError) return build("not-found", error.message, requestId);
  if (error instanceof ConflictError) return build("conflict", error.message, requestId);
  if (error instanceof TooLargeError) return build("too-large", error.message, requestId);
  return build(
    "internal",
    "Something went wrong on this server; its log has the cause under this requestId.",
    requestId,
  );
}
