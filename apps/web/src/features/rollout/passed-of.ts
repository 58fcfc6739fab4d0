/** How many samples of one instance passed: the spread of one question's answers, in numbers. Pure. */
export interface Sampled {
  /** The verifier's word; null while there is none, or where it gave none. */
  readonly success: boolean | null;
}
export interface PassedOf {
  readonly passed: number;
  readonly graded: number;
  readonly samples: number;
}

/** Null for a single sample, which has no spread, and before the first one is graded. */
export function passedOf(samples: readonly Sampled[]): PassedOf | null {
  const graded = samples.filter(({ success }) => success !== null);
  if (samples.length < 2 || graded.length === 0) return null;
  return { passed: graded.filter(({ success }) => success).length, graded: graded.length, samples: samples.length };
}

/** Samples without a verdict are neither passed nor failed: they are told apart. */
export const passedWords = ({ passed, graded, samples }: PassedOf): string =>
  `${passed} of ${graded} samples of this instance passed${graded < samples ? `, ${samples - graded} without a verdict` : ""}`;
