/** Whether a GPU worker answers, and which boot of it. */
import { z } from "zod";

const timeoutMs = 4_000;
const Info = z.object({ boot_id: z.string().min(1).max(200) });

/** Null: it does not answer, or not as a GPU worker does. @throws the signal's reason */
export async function readHealth(
  url: string,
  key: string,
  signal: AbortSignal,
): Promise<{ readonly bootId: string } | null> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(`${url}/ext/v1/info`, {
      headers: { "X-API-Key": key },
      redirect: "error",
      signal: limit,
    });
    const body: unknown = await response.json();
    const info = Info.safeParse(body);
    return response.ok && info.success ? { bootId: info.data.boot_id } : null;
  } catch {
    // Whatever went wrong: it is no answer. An abort is the caller's.
    signal.throwIfAborted();
    return null;
  }
}
