/** Where an outside formula is another one than ours, in more than one package. */
import type { GroupAdvantageName } from "@rolldeck/rl/group-advantages";
import type { Comparison } from "./comparison.ts";
import {
  absoluteKl,
  atTokens,
  batchLoss,
  klOf,
  type LossOptions,
  rowAdvantages,
  rowScales,
  timesLoss,
  trainedRows,
  withSingles,
} from "./our-numbers.ts";
import { reinforceBySpan, reinforceBySpanShifted } from "./our-reinforce.ts";

type Ours = Pick<Comparison, "ours" | "differs">;

/** A group of one has no baseline: we give it 0, others its reward. */
export const singlesDiffer = (name: GroupAdvantageName, theirs: string, single: (reward: number) => number): Ours => ({
  ours: (batch) => ({ advantages: atTokens(batch, rowAdvantages(batch, name)) }),
  differs: {
    ours: "n = 1: A = 0 (nothing to compare with)",
    theirs: `n = 1: A = ${theirs}`,
    mapping: "groups of one get their formula; every other group is as it is",
    mapped: (batch) => ({ advantages: atTokens(batch, withSingles(batch, rowAdvantages(batch, name), single)) }),
  },
});

/** A masked gap ends a return. */
export const spansDiffer: NonNullable<Comparison["differs"]> = {
  ours: "every trained token of a rollout has the return R; whitened over those tokens",
  theirs:
    "the return is carried back from the last token and set to 0 at each masked one: tokens before a gap have return 0",
  mapping: "each span of trained tokens is given as a rollout; the last one of a row has its reward, the others 0",
  mapped: reinforceBySpan,
};

/** As `spansDiffer`, in a package whose masked mean divides by M + 1e-8. */
export const shiftedSpansDiffer: NonNullable<Comparison["differs"]> = {
  ...spansDiffer,
  theirs: `${spansDiffer.theirs}; the mean is Σ / (M + 1e-8)`,
  mapping: `${spansDiffer.mapping}; then + μ · 1e-8 / M over the deviation`,
  mapped: reinforceBySpanShifted,
};

export const absoluteKlDiffers: Ours = {
  ours: klOf("k1"),
  differs: {
    ours: "k1 = d",
    theirs: "abs = |d|",
    mapping: "|k1|, its gradient times the sign of d",
    mapped: absoluteKl,
  },
};

/** Means over sequences that leave out rows without a trained token. */
export const emptyRowsDiffer = (
  loss: Parameters<typeof batchLoss>[1],
  normalisation: "sequence-mean" | "constant",
  { factor = 1, ...options }: LossOptions & { readonly factor?: number } = {},
): Ours => {
  const ours: Comparison["ours"] = (batch) =>
    batchLoss(batch, loss, { ...options, scales: rowScales(batch, normalisation) });
  const times = factor === 1 ? "" : ` · ${factor}`;
  return {
    ours,
    differs: {
      ours: normalisation === "constant" ? "Σ / (N · L), N all sequences" : "Σ_i (Σ_t / m_i) / N, N all sequences",
      theirs:
        normalisation === "constant"
          ? `Σ / (N⁺${factor === 1 ? " · L" : ""}), N⁺ sequences with a trained token`
          : "Σ_i (Σ_t / m_i) / N⁺, N⁺ sequences with a trained token",
      mapping: `× N / N⁺${times}`,
      mapped: (batch) => timesLoss(ours(batch), (factor * batch.mask.length) / trainedRows(batch)),
    },
  };
};
