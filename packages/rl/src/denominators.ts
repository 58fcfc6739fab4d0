/**
 * Loss denominators, computed once per optimizer step over all sequences, never per micro-batch. A sequence is a rollout:
 * all of its rows together, so that splitting or merging rows changes no token's weight. Sequences that are fully masked
 * (cut, zero variance) count in N; rollouts that were never scored left their group and do not.
 * Token loss terms are summed by the trainer; the scale carries the division.
 */
import type { RunConfig } from "@rolldeck/contracts/run-config";

export type Normalisation = RunConfig["algorithm"]["normalisation"];

export interface SequenceTokens {
  /** Tokens that carry loss mask 1 (zero-variance filtering not counted), over all rows of the rollout. */
  readonly trainedTokens: number;
}

/**
 * token-mean: 1 / Σm · sequence-mean: 1 / (N · m_i) · constant: 1 / (N · L).
 * @param sequences one per scored rollout of the step
 * @param normaliserTokens L of the constant normaliser, tokens
 * @returns the scale of each sequence's token terms; 0 where a sequence has no trained token
 */
export function lossScales(
  sequences: readonly SequenceTokens[],
  normalisation: Normalisation,
  normaliserTokens: number,
): number[] {
  const count = sequences.length;
  const total = sequences.reduce((sum, sequence) => sum + sequence.trainedTokens, 0);
  return sequences.map(({ trainedTokens }) => {
    if (trainedTokens === 0) return 0;
    if (normalisation === "token-mean") return 1 / total;
    if (normalisation === "sequence-mean") return 1 / (count * trainedTokens);
    return 1 / (count * normaliserTokens);
  });
}
