/**
 * The gate for rewards that come from a verifier's own code. Invariant: what passes is a finite number or null (missing);
 * nothing else ever reaches statistics, storage or JSON.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";

/**
 * A verifier's reward as a number: booleans count 1 and 0; null, undefined and NaN are missing, never 0.
 * @param task named in the error, so that its author knows whose verifier to mend
 * @throws BoundaryError("verifier") for text, infinities and every other type
 */
export function readReward(value: unknown, task: string): number | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number" && Number.isNaN(value)) return null;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  const shown = typeof value === "number" ? String(value) : typeof value;
  throw new BoundaryError("verifier", "bad-reward", `task ${task} gave a reward that is not a finite number: ${shown}`);
}
