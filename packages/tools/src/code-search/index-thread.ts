/** Main module of an index thread: tasks in, answers out. A failed task is an answer; the thread goes on. */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { IndexHost } from "./index-host.ts";
import type { FromThread, ThreadResults, ThreadTask, ToThread } from "./thread-message.ts";

const { maxBytes } = z.object({ maxBytes: z.int().positive() }).parse(workerData);
const host = new IndexHost({ maxBytes });
const stopped = new Set<number>();
const running = new Set<number>();

async function perform(task: ThreadTask, isStopped: () => boolean): Promise<ThreadResults[keyof ThreadResults]> {
  switch (task.kind) {
    case "refresh":
      return host.refresh(task.id, task.listing);
    case "open":
      return host.open(task.id, task.root, task.listing, task.hashes);
    case "supply":
      await host.supply(task.id, task.tar);
      return undefined;
    case "settle":
      host.settle(task.id);
      return undefined;
    case "search":
      return host.search(task.id, task.request, isStopped);
  }
}

async function answer(call: number, task: ThreadTask): Promise<void> {
  running.add(call);
  const reply = (message: FromThread): void => parentPort?.postMessage(message);
  try {
    reply({ call, value: await perform(task, () => stopped.has(call)) });
  } catch (error) {
    reply({ call, error: error instanceof Error ? error.message : String(error) });
  } finally {
    running.delete(call);
    stopped.delete(call);
  }
}

parentPort?.on("message", (message: ToThread) => {
  if ("stop" in message) {
    if (running.has(message.stop)) stopped.add(message.stop);
  } else void answer(message.call, message.task);
});
