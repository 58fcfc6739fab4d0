/** What a chart draws: one or more series over the same x. Missing is null; NaN and infinities are marked, never drawn as numbers. */
export interface ChartPoint {
  readonly x: number;
  readonly value: number | null;
  /** Equal to `value` unless points were bucketed. */
  readonly min: number | null;
  readonly max: number | null;
  /** Points in the bucket. */
  readonly count: number;
  readonly nonFinite: "NaN" | "Infinity" | "-Infinity" | null;
}
export interface ChartSeries {
  readonly key: string;
  readonly label: string;
  /** A CSS colour, usually a token. */
  readonly colour: string;
  readonly dash?: string;
  readonly points: readonly ChartPoint[];
}
/** A thin line on the x axis: checkpoint, resume, restart, weight sync. */
export interface ChartMark {
  readonly x: number;
  readonly kind: string;
  readonly label: string;
}
