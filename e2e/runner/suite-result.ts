/** What a suite came to. A suite that could not run at all counts as one failure, never as nothing. */
export interface Skip {
  readonly name: string;
  readonly reason: string;
}
export interface Failure {
  readonly name: string;
  /** What the test or tool said; "" where it said nothing but that it failed. */
  readonly message: string;
}
export interface SuiteResult {
  passed: number;
  failed: number;
  skipped: Skip[];
  failures: Failure[];
}
export const emptyResult = (): SuiteResult => ({ passed: 0, failed: 0, skipped: [], failures: [] });

export function addFailure(result: SuiteResult, name: string, message = ""): void {
  result.failed += 1;
  result.failures.push({ name, message });
}

export function couldNotRun(suite: string, error: unknown): SuiteResult {
  const result = emptyResult();
  addFailure(result, `${suite}: could not run`, error instanceof Error ? error.message : String(error));
  return result;
}
