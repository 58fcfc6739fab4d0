"use client";
/** The stretch of time that is shown, kept in the address; absent there: all of it, which follows a step that is under way. */
import { parseAsInteger, useQueryStates } from "nuqs";
import { useCallback, useMemo } from "react";
import { pan, type View, within, zoom } from "./gantt-layout.ts";

export interface ViewControl {
  readonly view: View;
  readonly isWhole: boolean;
  zoomBy(factor: number, aboutMs?: number): void;
  panBy(ms: number): void;
  reset(): void;
}

export function useView(toMs: number): ViewControl {
  const [shown, setShown] = useQueryStates(
    { from: parseAsInteger, to: parseAsInteger },
    { history: "replace", throttleMs: 300 },
  );
  const whole = useMemo(() => ({ fromMs: 0, toMs: Math.max(1, toMs) }), [toMs]);
  const isWhole = shown.from === null || shown.to === null || shown.to <= shown.from;
  const view = isWhole ? whole : within({ fromMs: shown.from ?? 0, toMs: shown.to ?? 0 }, whole);
  const set = useCallback(
    (next: View) => {
      const all = next.fromMs <= whole.fromMs && next.toMs >= whole.toMs;
      void setShown(all ? { from: null, to: null } : { from: Math.round(next.fromMs), to: Math.round(next.toMs) });
    },
    [setShown, whole],
  );
  return {
    view,
    isWhole,
    zoomBy: (factor, aboutMs = (view.fromMs + view.toMs) / 2) => set(zoom(view, whole, aboutMs, factor)),
    panBy: (ms) => set(pan(view, whole, ms)),
    reset: () => void setShown({ from: null, to: null }),
  };
}
