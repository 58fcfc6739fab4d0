/**
 * What a vLLM or SGLang server bears, from its own metrics. Several engines behind one address have a sample each: requests are added
 * up, and of the caches the fullest counts.
 */
import type { EngineReading } from "@rolldeck/contracts/ports/backend";
import { readSamples } from "../prometheus/read-samples.ts";

interface Names {
  readonly running: string;
  readonly waiting: string;
  /** Share of the key-value cache, 0–1; the first that the server has. */
  readonly cacheUse: readonly string[];
}
const servers: readonly Names[] = [
  {
    running: "vllm:num_requests_running",
    waiting: "vllm:num_requests_waiting",
    // The second is what older versions call it.
    cacheUse: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
  },
  { running: "sglang:num_running_reqs", waiting: "sglang:num_queue_reqs", cacheUse: ["sglang:token_usage"] },
];
const allNames = servers.flatMap(({ running, waiting, cacheUse }) => [running, waiting, ...cacheUse]);

/** @param text Prometheus' text format @returns null where it does not tell all of it */
export function engineReading(text: string): EngineReading | null {
  const samples = readSamples(text, allNames);
  if (samples === null) return null;
  const valuesOf = (name: string): readonly number[] => samples.get(name) ?? [];
  for (const names of servers) {
    const [running, waiting] = [valuesOf(names.running), valuesOf(names.waiting)];
    const cacheUse = names.cacheUse.map(valuesOf).find((values) => values.length > 0) ?? [];
    const all = [running, waiting, cacheUse];
    if (all.some((values) => values.length === 0) || !all.flat().every(isAmount)) continue;
    return { running: sum(running), waiting: sum(waiting), cacheUse: Math.min(1, Math.max(...cacheUse)) };
  }
  return null;
}

/** Of several servers of one endpoint. */
export const readingOfAll = (readings: readonly EngineReading[]): EngineReading | null =>
  readings.length === 0
    ? null
    : {
        running: sum(readings.map(({ running }) => running)),
        waiting: sum(readings.map(({ waiting }) => waiting)),
        cacheUse: Math.max(...readings.map(({ cacheUse }) => cacheUse)),
      };

const isAmount = (value: number): boolean => Number.isFinite(value) && value >= 0;

const sum = (values: readonly number[]): number => Math.round(values.reduce((total, value) => total + value, 0));
