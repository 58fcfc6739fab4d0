/** One thing that `rolldeck doctor` looked at. */
export interface Finding {
  readonly what: string;
  readonly state: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What to type or change; null when nothing is to be done. */
  readonly fix: string | null;
}
