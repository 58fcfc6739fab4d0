"use client";
/** What the variants have in common: a preset, or the config of a run that is there. */
import { presets } from "@rolldeck/contracts/presets";
import { useQuery } from "@tanstack/react-query";
import { useTRPC } from "../../api/query-provider.tsx";
import { isPreset } from "../new-run/use-draft.ts";

export interface CommonConfig {
  readonly title: string;
  readonly summary: string;
  readonly config: unknown;
}

/**
 * @param from id of a run; null = a preset
 * @param preset its name; one that is not there is the quickstart
 * @returns `common` null while the run is read, and when it can't be
 */
export function useCommonConfig(from: string | null, preset: string | null) {
  const trpc = useTRPC();
  const run = useQuery(
    trpc.runs.get.queryOptions({ runId: from ?? "" }, { enabled: from !== null, staleTime: 60_000 }),
  );
  return {
    common: from === null ? ofPreset(preset) : (run.data && ofRun(run.data)) || null,
    error: from === null ? null : run.error,
  };
}

const ofPreset = (name: string | null): CommonConfig => presets[isPreset(name) ? name : "quickstart"];
const ofRun = ({ name, config }: { readonly name: string; readonly config: unknown }): CommonConfig => ({
  title: name,
  summary: "The whole config of this run.",
  config,
});
