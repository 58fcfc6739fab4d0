"use client";
import { useEffect, useMemo, useRef } from "react";

/** Runs `work` at most once per `ms`, the last request always honoured: bursts of hints cost one fetch. */
export function useThrottled(work: () => void, ms: number): () => void {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const lastAt = useRef(0);
  useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);
  return useMemo(
    () => () => {
      if (timer.current) return;
      const wait = Math.max(0, lastAt.current + ms - Date.now());
      timer.current = setTimeout(() => {
        timer.current = null;
        lastAt.current = Date.now();
        latest.current();
      }, wait);
    },
    [ms],
  );
}
