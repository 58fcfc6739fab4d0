/** Questions to a launched worker, and the failure of what must not work. */
import { LaunchFailure } from "../src/launch-failure.ts";

export async function askWorker(url: string, path: string, key: string): Promise<{ status: number; body: unknown }> {
  const headers = { "x-api-key": key };
  const response = await fetch(`${url}${path}`, { headers, signal: AbortSignal.timeout(5_000) });
  return { status: response.status, body: await response.json() };
}

export async function untilUp(url: string): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const up = await fetch(`${url}/api/v1/healthz`, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (up) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${url} did not come up`);
}

export async function failureOf(work: Promise<unknown>): Promise<LaunchFailure> {
  const error = await work.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof LaunchFailure)) throw error;
  return error;
}
