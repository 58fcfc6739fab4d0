/** Waits until an address answers at all (any status below 500). */
export async function waitForHealth(url: string, limitMs: number, signal?: AbortSignal): Promise<void> {
  const endsAt = Date.now() + limitMs;
  let last = "no answer yet";
  while (Date.now() < endsAt) {
    signal?.throwIfAborted();
    try {
      const response = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      if (response.status < 500) return;
      last = `status ${response.status}`;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(
    `${url} did not come up within ${limitMs / 1000} s (${last}); see the logs folder in the data folder`,
  );
}
