/**
 * The number by which a model server refuses an older holder of a run's model. It rises with every prepare, and below that with
 * every update and every claim of it, so it orders all holders of one run in time.
 */
const stepsPerPrepare = 2 ** 20;
const claimsPerStep = 2 ** 10;

/** Above every holder of that prepare and below those of the next: for whoever cleans up after a run. */
export const lastToken = (prepareClaim: number): number =>
  fenceToken({ prepareClaim, step: stepsPerPrepare - 1, claim: claimsPerStep - 1 });

export function fenceToken(holder: {
  readonly prepareClaim: number;
  /** 0 for the prepare job itself. */
  readonly step: number;
  readonly claim: number;
}): number {
  const claim = Math.min(holder.claim, claimsPerStep - 1);
  return (holder.prepareClaim * stepsPerPrepare + Math.min(holder.step, stepsPerPrepare - 1)) * claimsPerStep + claim;
}
