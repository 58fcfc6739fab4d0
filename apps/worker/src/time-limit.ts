/** Wall-clock time that an agent has. Reaching it is an ending of the rollout, not a failure of the stage. */
export interface TimeLimit {
  /** Aborts when the time is over, or when the outer signal does. */
  readonly signal: AbortSignal;
  /** The time is over and nothing else ended the work. */
  isOver(): boolean;
  /** Lets the timer go. */
  end(): void;
}

/** @param leftMs null = no limit */
export function timeLimit(leftMs: number | null, outer: AbortSignal): TimeLimit {
  if (leftMs === null) return { signal: outer, isOver: () => false, end: () => undefined };
  const controller = new AbortController();
  let over = false;
  const timer = setTimeout(
    () => {
      over = !outer.aborted;
      controller.abort(new Error("the agent's time is over"));
    },
    Math.min(Math.max(leftMs, 0), 2 ** 31 - 1),
  );
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    isOver: () => over && !outer.aborted,
    end: () => clearTimeout(timer),
  };
}
