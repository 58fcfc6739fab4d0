/** Wall-clock time that an agent has. Reaching it is an ending of the rollout, not a failure of the stage. */
export interface TimeLimit {
  /** Aborts when the time is over, or when the outer signal does. */
  readonly signal: AbortSignal;
  /** The time is over and nothing else ended the work. */
  isOver(): boolean;
  /** Work that is not the agent's: its time stands still meanwhile. */
  without<T>(work: () => Promise<T>): Promise<T>;
  /** Time that turned out not to be the agent's is given back. @param ms milliseconds; one that is over stays over */
  giveBack(ms: number): void;
  /** Lets the timer go. */
  end(): void;
}

const longestTimerMs = 2 ** 31 - 1;

/**
 * @param leftMs null = no limit
 * @param now monotonic milliseconds
 */
export function timeLimit(leftMs: number | null, outer: AbortSignal, now = () => performance.now()): TimeLimit {
  if (leftMs === null) {
    return {
      signal: outer,
      isOver: () => false,
      without: (work) => work(),
      giveBack: () => undefined,
      end: () => undefined,
    };
  }
  const controller = new AbortController();
  let left = Math.max(leftMs, 0);
  let over = false;
  let startedAt = now();
  let timer: NodeJS.Timeout | null = null;
  let ended = false;
  /** Does nothing where it stands still already. */
  const stop = (): void => {
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    left = Math.max(left - (now() - startedAt), 0);
  };
  const start = (): void => {
    startedAt = now();
    if (ended || controller.signal.aborted) return;
    timer = setTimeout(
      () => {
        timer = null;
        left = 0;
        over = !outer.aborted;
        controller.abort(new Error("the agent's time is over"));
      },
      Math.min(left, longestTimerMs),
    );
  };
  start();
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    isOver: () => over && !outer.aborted,
    without: async (work) => {
      stop();
      try {
        return await work();
      } finally {
        start();
      }
    },
    giveBack: (ms) => {
      const runs = timer !== null;
      stop();
      left += Math.max(ms, 0);
      if (runs) start();
    },
    end: () => {
      ended = true;
      stop();
    },
  };
}
