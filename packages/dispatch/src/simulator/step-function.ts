/** A count over time that changes in steps. Invariant: times rise, and two neighbours differ in value. */
export interface StepFunction {
  readonly at: readonly number[];
  readonly value: readonly number[];
}

export class StepRecorder implements StepFunction {
  readonly at: number[] = [];
  readonly value: number[] = [];

  /** @param at not before the last one; several of one time leave the last value */
  record(at: number, value: number): void {
    if (this.at.at(-1) === at) {
      this.at.pop();
      this.value.pop();
    }
    if ((this.value.at(-1) ?? 0) === value) return;
    this.at.push(at);
    this.value.push(value);
  }
}

/** Mean over [from, to); 0 before the first step. @returns 0 for an empty span of time */
export function meanOf({ at, value }: StepFunction, from: number, to: number): number {
  if (to <= from) return 0;
  let area = 0;
  for (const [nth, start] of at.entries()) {
    const end = at[nth + 1] ?? to;
    area += (value[nth] ?? 0) * Math.max(0, Math.min(end, to) - Math.max(start, from));
  }
  return area / (to - from);
}

export const peakOf = ({ value }: StepFunction): number => value.reduce((most, one) => Math.max(most, one), 0);
