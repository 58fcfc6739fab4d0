/**
 * The threads that hold indexes, started when first needed: parsing and searching never hold up the process's own event loop. One
 * that ends takes its indexes with it; what it was doing fails, and the next call starts another.
 */
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { FromThread, ThreadResults, ThreadTask, ToThread } from "./thread-message.ts";

const maxThreads = 2;
/** Of all indexes of a thread. */
const maxIndexBytes = 512 * 1024 * 1024;
/** Indexes and a batch of contents; parsers keep theirs elsewhere. */
const maxHeapMegabytes = 1536;
/** A thread that has not come back to a call this long after it was given up is stuck, and is ended. */
const stuckMs = 60_000;

interface Waiting {
  resolve(value: ThreadResults[keyof ThreadResults]): void;
  reject(error: Error): void;
}
interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
}

export class IndexThreads {
  readonly #threads = new Map<number, Thread>();
  readonly #count = Math.max(1, Math.min(maxThreads, availableParallelism() - 1));
  #calls = 0;

  /**
   * Rollouts that are likely to have the same tree should give the same `affinity`: they then share one thread's index.
   * @throws BoundaryError("infrastructure") when the thread ended or failed; the signal's reason when it aborts
   */
  async run<T extends ThreadTask>(affinity: string, task: T, signal: AbortSignal): Promise<ThreadResults[T["kind"]]> {
    signal.throwIfAborted();
    const thread = this.#thread(createHash("sha256").update(affinity).digest().readUInt32BE(0) % this.#count);
    this.#calls += 1;
    const call = this.#calls;
    const post = (message: ToThread): void => thread.worker.postMessage(message);
    const onAbort = (): void => {
      post({ stop: call });
      const waiting = thread.waiting.get(call);
      if (waiting === undefined) return;
      waiting.reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
      const stuck = setTimeout(() => void thread.worker.terminate(), stuckMs).unref();
      const over = (): void => clearTimeout(stuck);
      thread.waiting.set(call, { resolve: over, reject: over });
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const value = await new Promise<ThreadResults[keyof ThreadResults]>((resolve, reject) => {
        thread.waiting.set(call, { resolve, reject });
        post({ call, task });
      });
      // A thread answers each task with what that task gives.
      return value as ThreadResults[T["kind"]];
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Ends them all; the next call starts anew. */
  async close(): Promise<void> {
    const threads = [...this.#threads.values()];
    this.#threads.clear();
    for (const { waiting } of threads) {
      for (const { reject } of waiting.values()) reject(failed("the index thread was ended"));
      waiting.clear();
    }
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }

  #thread(place: number): Thread {
    const known = this.#threads.get(place);
    if (known !== undefined) return known;
    const worker = startWorker();
    const thread: Thread = { worker, waiting: new Map() };
    const end = (why: string, cause?: unknown): void => {
      if (this.#threads.get(place) === thread) this.#threads.delete(place);
      for (const { reject } of thread.waiting.values()) reject(failed(why, cause));
      thread.waiting.clear();
    };
    worker.on("message", ({ call, value, error }: FromThread) => {
      const waiting = thread.waiting.get(call);
      thread.waiting.delete(call);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(failed(error));
    });
    worker.on("error", (cause) => end("the index thread failed", cause));
    worker.on("exit", () => end("the index thread ended"));
    // Indexes alone are no reason to keep a process.
    worker.unref();
    this.#threads.set(place, thread);
    return thread;
  }
}

const failed = (why: string, cause?: unknown): BoundaryError =>
  new BoundaryError("infrastructure", "search_index", why, { cause, retryable: true });

/** Bundled servers have the thread's bundle beside their own; from source, the thread reads source as this process does. */
function startWorker(): Worker {
  const here = import.meta.url;
  const options = {
    workerData: { maxBytes: maxIndexBytes },
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes },
    execArgv: [],
  };
  if (!here.endsWith(".ts")) return new Worker(new URL("./index-thread.mjs", here), options);
  const tsx = pathToFileURL(createRequire(here).resolve("tsx"));
  const [loader, main] = [new URL("./esm/api/index.mjs", tsx), new URL("./index-thread.ts", here)].map(({ href }) =>
    JSON.stringify(href),
  );
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${main}); });`, {
    ...options,
    eval: true,
  });
}
