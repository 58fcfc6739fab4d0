/**
 * Loss denominators, computed once per optimizer step over all sequences, never per micro-batch. A sequence is a rollout:
 * all of its rows together, so that splitting or merging rows changes no token's weight. Sequences that are fully masked
 * (cut, zero variance) count in N, and their groups in P; rollouts that were never scored left their group and do not.
 * Token loss terms are summed by the trainer; the scale carries the division.
 */
import type { RunConfig } from "@rolldeck/contracts/run-config";

export type Normalisation = RunConfig["algorithm"]["normalisation"];

export interface SequenceTokens {
  /** Tokens that carry loss mask 1 (zero-variance filtering not counted), over all rows of the rollout. */
  readonly trainedTokens: number;
  /** Which prompt it answers: what `prompt-mean` averages over. */
  readonly group: number;
}

/**
 * With m_i the trained tokens of sequence i, M of all, M_p of all sequences of prompt p:
 * token-mean 1 / M · sequence-mean 1 / (N · m_i) · constant 1 / (N · L) (arXiv:2503.20783) · prompt-mean 1 / (P · M_p).
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
  const ofGroup = new Map<number, number>();
  for (const { group, trainedTokens } of sequences) ofGroup.set(group, (ofGroup.get(group) ?? 0) + trainedTokens);
  const denominator = {
    "token-mean": () => total,
    "sequence-mean": ({ trainedTokens }: SequenceTokens) => count * trainedTokens,
    constant: () => count * normaliserTokens,
    "prompt-mean": ({ group }: SequenceTokens) => ofGroup.size * (ofGroup.get(group) ?? 0),
  }[normalisation];
  return sequences.map((sequence) => (sequence.trainedTokens === 0 ? 0 : 1 / denominator(sequence)));
}
