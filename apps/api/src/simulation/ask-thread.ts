/** One answer of a thread of its own, which ends with it. */
import { startThread } from "./start-thread.ts";
import { AnswerFromThread, type OverlapTask, type PredictionTask } from "./thread-message.ts";

/**
 * @param limits `limitMs` milliseconds; `signal` gives it up
 * @returns null where there was none in time, or it was given up
 * @throws Error with what the thread failed of
 */
export async function askThread(
  task: OverlapTask | PredictionTask,
  { limitMs, signal }: { readonly limitMs: number; readonly signal?: AbortSignal },
): Promise<Exclude<AnswerFromThread, { failed: string }> | null> {
  const thread = startThread(task);
  thread.unref();
  let timer: NodeJS.Timeout | undefined;
  try {
    const message = await new Promise<unknown>((resolve, reject) => {
      const none = () => resolve(null);
      timer = setTimeout(none, limitMs);
      if (signal?.aborted) none();
      signal?.addEventListener("abort", none, { once: true });
      thread.once("message", resolve).once("error", reject).once("exit", none);
    });
    if (message === null) return null;
    const answer = AnswerFromThread.parse(message);
    if ("failed" in answer) throw new Error(answer.failed);
    return answer;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}
