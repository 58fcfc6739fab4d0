"use client";
/** The text being edited and where it began: a run to clone, a preset, or the draft that was left behind. */
import { type PresetName, presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { readStored, writeStored } from "../shell/stored.ts";
import { useHydrated } from "../shell/use-hydrated.ts";
import { configToText } from "./config-text.ts";
import { onFrom } from "./on-from.ts";

export interface DraftSource {
  readonly label: string;
  readonly config: unknown;
}
interface Draft {
  readonly text: string;
  readonly source: DraftSource | null;
}
const storedKey = "draft.run";
export const isPreset = (name: string | null): name is PresetName => name !== null && Object.hasOwn(presets, name);

const fromPreset = (name: PresetName): Draft => ({
  text: configToText(presets[name].config),
  source: { label: `preset ${name}`, config: RunConfig.parse(presets[name].config) },
});

/**
 * @param from id of a run to clone
 * @param version of its checkpoint that the new run begins with; null = as the cloned run began
 * @param preset name of a preset
 */
export function useDraft(from: string | null, version: number | null, preset: string | null) {
  const trpc = useTRPC();
  const origin = useQuery(
    trpc.runs.get.queryOptions({ runId: from ?? "" }, { enabled: from !== null, staleTime: 60_000 }),
  );
  const hydrated = useHydrated();
  const [draft, setDraft] = useState<Draft | null>(null);
  const [restored, setRestored] = useState(false);
  const begin = useCallback((next: Draft) => {
    setDraft(next);
    setRestored(false);
  }, []);

  if (draft === null && hydrated) {
    if (from !== null) {
      if (origin.data)
        begin({
          text: configToText(version === null ? origin.data.config : onFrom(origin.data.config, from, version)),
          source: { label: `run ${origin.data.name}`, config: origin.data.config },
        });
    } else if (isPreset(preset)) {
      begin(fromPreset(preset));
    } else {
      const kept = readStored(storedKey);
      setDraft(kept ? { ...fromPreset("quickstart"), text: kept } : fromPreset("quickstart"));
      setRestored(kept !== null);
    }
  }
  return {
    draft,
    restored,
    error: from === null ? null : origin.error,
    setText: (text: string) => {
      writeStored(storedKey, text);
      setDraft((known) => (known ? { ...known, text } : known));
    },
    choosePreset: (name: PresetName) => {
      writeStored(storedKey, null);
      begin(fromPreset(name));
    },
    discard: () => writeStored(storedKey, null),
  };
}
