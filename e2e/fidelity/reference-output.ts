/** What a package's reference.py writes, and what is committed of it as golden output. */
import { z } from "zod";

/** A number, or arrays of numbers of any depth. */
type Nested = number | readonly Nested[];
const Nested: z.ZodType<Nested> = z.lazy(() => z.union([z.number(), z.array(Nested)]));

export const Numbers = z.strictObject({
  value: z.number().optional(),
  /** Rows × T, with respect to the log-probs under training. */
  gradient: Nested.optional(),
  /** Rows × T, or rows. */
  advantages: Nested.optional(),
  values: Nested.optional(),
});
export type Numbers = z.infer<typeof Numbers>;

export const ReferenceOutput = z.strictObject({
  /** By distribution. */
  versions: z.record(z.string(), z.string()),
  dtype: z.enum(["float64", "float32"]),
  ops: z.record(z.string(), z.record(z.string(), Numbers)),
  missing: z.array(z.strictObject({ what: z.string(), error: z.string() })),
});
export type ReferenceOutput = z.infer<typeof ReferenceOutput>;

/** A line of imports.py. */
export const ImportLine = z.strictObject({
  package: z.string(),
  version: z.string().nullable(),
  function: z.string(),
  ok: z.boolean(),
  error: z.string().nullable(),
});
export type ImportLine = z.infer<typeof ImportLine>;
