/** What a charted number says of itself. */
export interface MetricDefinition {
  readonly title: string;
  readonly unit: string;
  readonly better: "higher" | "lower" | "none";
  readonly section: "reward" | "stability" | "throughput" | "rollouts" | "shared" | "native" | "cost";
  readonly definition: string;
}
