import { z } from "zod";
import { hasHalfPair } from "../has-half-pair.ts";

/** Longest command, in UTF-16 units: what is larger belongs in a file. */
const maxUnits = 1_000_000;

export const CommandText = z
  .string()
  .max(maxUnits, `is longer than ${maxUnits} characters; write a file and run that`)
  .refine((text) => !text.includes("\0"), "holds a NUL character, which no command can")
  .refine((text) => !hasHalfPair(text), "holds half of a surrogate pair, which is no character");
