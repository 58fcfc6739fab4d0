import { BoundaryError } from "@rolldeck/contracts/errors";
import type { z } from "zod";

/** A server's answer through its schema. @throws BoundaryError("model-server", "bad_answer") */
export function parseReply<S extends z.ZodType>(schema: S, json: unknown, what: string): z.infer<S> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues.map((issue) => `${issue.path.join(".") || "(root)"}: ${issue.message}`).join("; ");
  throw new BoundaryError("model-server", "bad_answer", `${what}: answer not understood: ${where.slice(0, 300)}`, {
    cause: parsed.error,
  });
}
