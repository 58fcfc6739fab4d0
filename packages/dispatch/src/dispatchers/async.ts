/**
 * The pipeline across updates: groups start while older ones train, at most maxStaleness versions ahead of the update they join.
 * Groups that began earliest are finished first, for they have the least time left.
 */
import type { Candidate, Dispatcher } from "../dispatcher.ts";
import { pipeline } from "./pipeline.ts";

export const async: Dispatcher = {
  ...pipeline,
  description: "As pipeline, and groups start while older ones train, at most maxStaleness versions ahead.",
  compare: (a, b) => begunAt(a) - begunAt(b),
  overlapsUpdates: true,
};

const begunAt = ({ groupVersion }: Candidate): number => groupVersion ?? Number.MAX_SAFE_INTEGER;
