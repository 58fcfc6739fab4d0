/** What a backend said of an update, by its own names. Pure. A server that someone else runs may say anything: so much of it is kept. */
import { type NativeMetricName, nativeMetric } from "@rolldeck/contracts/metrics";

/** Names in one update; the first in their order. */
export const mostNativePoints = 100;

/** @param sums of the update's requests: only sums of several requests have a meaning @param optim of its one optimizer step */
export function nativePoints(
  backend: string,
  sums: Readonly<Record<string, number>>,
  optim: Readonly<Record<string, number>>,
): Partial<Record<NativeMetricName, number>> {
  const named = [...Object.entries(sums).map(([name, sum]) => [`${name}:sum`, sum] as const), ...Object.entries(optim)];
  const points = new Map<NativeMetricName, number>();
  for (const [name, value] of named.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const metric = nativeMetric(backend, name);
    if (metric !== null && points.size < mostNativePoints) points.set(metric, value);
  }
  return Object.fromEntries(points);
}
