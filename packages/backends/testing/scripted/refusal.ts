import type { WorkerError } from "@rolldeck/contracts/wire/tinker";
import type { z } from "zod";

export type RefusalCode = z.infer<typeof WorkerError>["code"];

const statusOf: Record<RefusalCode, number> = {
  bad_input: 422,
  unknown_model: 404,
  conflict: 409,
  fenced: 409,
  sequence_gap: 409,
  step_mismatch: 409,
  busy: 429,
  oom: 500,
  no_space: 507,
  cancelled: 409,
  unauthorised: 401,
  too_large: 413,
  internal: 500,
};

/** A typed refusal as the GPU worker words it: HTTP status and `{detail, code, field}`. */
export class Refusal extends Error {
  readonly status: number;
  constructor(
    readonly code: RefusalCode,
    message: string,
    readonly field: string | null = null,
  ) {
    super(message);
    this.status = statusOf[code];
  }
  get body() {
    return { detail: this.message, code: this.code, field: this.field };
  }
}

/** A body through its schema; the refusal names the field. */
export function parseBody<S extends z.ZodType>(schema: S, body: unknown): z.infer<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Refusal("bad_input", issue?.message ?? "bad input", issue?.path.join(".") ?? null);
}

/** Of a future, as SkyRL's server says it. */
export class FailedFuture extends Refusal {
  override readonly status = 400;
  constructor(message: string) {
    super("bad_input", message);
  }
}
