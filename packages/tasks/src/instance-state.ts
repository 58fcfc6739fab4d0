import { BoundaryError } from "@rolldeck/contracts/errors";
import type { TaskInstance } from "@rolldeck/contracts/ports/task";
import type { z } from "zod";

/**
 * What a task keeps in an instance's state, read back.
 * @param what of the message: `… is no memory row` @throws BoundaryError("verifier") for an instance of another task
 */
export function instanceState<S extends z.ZodType>(schema: S, instance: TaskInstance, what: string): z.output<S> {
  const parsed = schema.safeParse(instance.state);
  if (parsed.success) return parsed.data;
  throw new BoundaryError("verifier", "bad_instance", `${instance.instanceId} is ${what}`, { cause: parsed.error });
}
