/**
 * One process of this machine at a time. The lock is a name in the kernel's list of sockets, which has no file: it is free in the moment
 * in which whoever has it is gone, however that went, so that none is ever stale.
 */
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 500;

/** Below 108 bytes. */
export const lockAddress = (name: string): string => `\0rolldeck-lock-${name}`;

/** @param onWait is told once, where another has it */
export async function withMachineLock<T>(name: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  let held = await take(name);
  if (held === null) onWait();
  for (; held === null; held = await take(name)) await sleep(pollMs);
  const server = held;
  try {
    return await work();
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Null: another has it. */
function take(name: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(null) : reject(error),
    );
    server.listen(lockAddress(name), () => resolve(server));
  });
}
