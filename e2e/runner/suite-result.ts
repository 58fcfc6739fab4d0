/** What a suite came to. A suite that could not run at all counts as one failure, never as nothing. */
export interface Skip {
  readonly name: string;
  readonly reason: string;
}
export interface SuiteResult {
  passed: number;
  failed: number;
  skipped: Skip[];
  failures: string[];
}
export const emptyResult = (): SuiteResult => ({ passed: 0, failed: 0, skipped: [], failures: [] });
