/**
 * Errors are typed by the boundary they crossed (design: a bad rollout is data, not a crash).
 * Invariant: every error that leaves an adapter is one of these and keeps its `cause`; an infrastructure failure is
 * never turned into a reward.
 */
export const boundaries = ["policy", "tool", "sandbox", "verifier", "model-server", "infrastructure"] as const;
export type Boundary = (typeof boundaries)[number];

/** What failed, at which boundary, and whether trying the same thing again can help. */
export class BoundaryError extends Error {
  override readonly name: string = "BoundaryError";
  constructor(
    readonly boundary: Boundary,
    readonly code: string,
    message: string,
    readonly options: { readonly cause?: unknown; readonly retryable?: boolean; readonly retryAfterMs?: number } = {},
  ) {
    super(message, { cause: options.cause });
  }
  get retryable(): boolean {
    return this.options.retryable ?? false;
  }
  get retryAfterMs(): number | undefined {
    return this.options.retryAfterMs;
  }
}

/** The claim, attempt or lease this writer held is no longer its own: it must write nothing more. */
export class FencedError extends Error {
  override readonly name = "FencedError";
  constructor(readonly what: string) {
    super(`fenced: ${what} now belongs to another claim or attempt`);
  }
}

/** A request the caller can correct. `path` names the field (`taskSets[0].weight`), `fix` says what to do. */
export class InputError extends Error {
  override readonly name = "InputError";
  constructor(readonly issues: readonly InputIssue[]) {
    super(issues.map((issue) => `${issue.path || "(root)"}: ${issue.message}`).join("; "));
  }
}
export interface InputIssue {
  readonly path: string;
  readonly message: string;
  readonly fix?: string;
}

/** A status change that the lifecycle table does not allow from the row's present status. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** What was asked for is more than one answer may hold; the message says how to ask for less. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

export class NotFoundError extends Error {
  override readonly name = "NotFoundError";
  constructor(
    readonly kind: string,
    readonly id: string,
  ) {
    super(`no ${kind} with id ${id}`);
  }
}
