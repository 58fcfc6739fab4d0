/** Text a person may type: no control characters, bounded. */
import { z } from "zod";

export const label = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, "must not contain control characters or broken surrogates");
