/** What one scripted worker knows while it lives. */
import { randomUUID } from "node:crypto";
import type { WorkerLoad } from "@rolldeck/contracts/wire/tinker";
import { ScriptedModels } from "./models.ts";
import { keyChainPolicy, type Policy } from "./sampling.ts";
import { UpdateTime } from "./update-time.ts";

export interface ScriptedState {
  readonly store: ScriptedModels;
  readonly policy: Policy;
  readonly delayMs: number;
  readonly futureMs: number;
  readonly saveMs: number;
  readonly updates: UpdateTime;
  readonly load: (samples: number) => WorkerLoad;
  /** By request id, on this process's monotonic clock. */
  readonly futureReadyAt: Map<string, number>;
  readonly sessions: Set<string>;
  bootId: string;
  readonly counters: {
    readonly requests: Map<string, number>;
    samples: number;
    cancelled: number;
    waiting: number;
    mostWaiting: number;
    heartbeats: number;
    outdated: number;
  };
}

export function newState(options: {
  readonly policy?: Policy;
  readonly delayMs?: number;
  readonly futureMs?: number;
  readonly saveMs?: number;
  readonly foreign?: boolean;
  readonly updateMs?: () => number;
  readonly onUpdate?: (underWay: boolean) => void;
  readonly gapMs?: number;
  readonly load?: (samples: number) => WorkerLoad;
}): ScriptedState {
  return {
    store: new ScriptedModels(options.gapMs ?? 5000, options.foreign),
    policy: options.policy ?? keyChainPolicy(),
    delayMs: options.delayMs ?? 0,
    futureMs: options.futureMs ?? 0,
    saveMs: options.saveMs ?? 0,
    updates: new UpdateTime(options),
    load: options.load ?? ((running) => ({ running, waiting: 0, cache_use: 0 })),
    futureReadyAt: new Map(),
    sessions: new Set(),
    bootId: randomUUID(),
    counters: { requests: new Map(), samples: 0, cancelled: 0, waiting: 0, mostWaiting: 0, heartbeats: 0, outdated: 0 },
  };
}

/** What a route answers with when it writes its answer itself. */
export const streaming = Symbol("streaming");
