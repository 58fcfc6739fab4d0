import type { BatchRow } from "@rolldeck/contracts/batch-row";

/** What a trainer of a driven run is told; a folder holds the weights that it begins with, another one its versions. */
export interface TrainerSettings {
  readonly steps: number;
  readonly groups: number;
  readonly samples: number;
  readonly leaseS: number;
  readonly base: string;
  readonly served: string;
  /** Address of what samples the versions in `served`. */
  readonly engines: string;
  readonly learningRate: number;
  readonly beta2: number;
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly klCoefficient: number;
}

/** A trainer that takes its rollouts from a driven run over its bridge. */
export interface OutsideTrainer {
  readonly name: string;
  /** @returns per step the largest |trainer − sampler| of a trained token, and the gradient's norm */
  train(
    settings: TrainerSettings,
    run: { readonly url: string; readonly token: string; readonly runId: string },
  ): Promise<readonly { readonly gap: number; readonly gradNorm: number }[]>;
  /** Log-probabilities under the weights it begins with, place by place of every row; null where it computes none. */
  forward(settings: TrainerSettings, rows: readonly BatchRow[]): Promise<(readonly (number | null)[])[]>;
}
