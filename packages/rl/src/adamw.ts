/** Reference AdamW (arXiv:1711.05101) in float64: what the trainer's float32 must reproduce. */
import type { AdamSpec } from "@rolldeck/contracts/ports/backend";

export interface AdamState {
  readonly step: number;
  readonly weight: number;
  readonly first: number;
  readonly second: number;
}

/** One update of one weight: decoupled decay first, then the bias-corrected step. */
export function adamwStep(state: AdamState, gradient: number, adam: AdamSpec): AdamState {
  const step = state.step + 1;
  const first = adam.beta1 * state.first + (1 - adam.beta1) * gradient;
  const second = adam.beta2 * state.second + (1 - adam.beta2) * gradient * gradient;
  const decayed = state.weight * (1 - adam.learningRate * adam.weightDecay);
  const corrected = first / (1 - adam.beta1 ** step);
  const root = Math.sqrt(second / (1 - adam.beta2 ** step));
  return { step, first, second, weight: decayed - (adam.learningRate * corrected) / (root + adam.eps) };
}

/** Scales all gradients so that their global L2 norm is at most `maxNorm`; 0 = off. Null when the norm is not finite. */
export function clipGlobalNorm(
  gradients: readonly number[],
  maxNorm: number,
): { gradients: number[]; norm: number } | null {
  const norm = Math.sqrt(gradients.reduce((sum, gradient) => sum + gradient * gradient, 0));
  if (!Number.isFinite(norm)) return null;
  const factor = maxNorm > 0 && norm > maxNorm ? maxNorm / norm : 1;
  return { gradients: gradients.map((gradient) => gradient * factor), norm };
}
