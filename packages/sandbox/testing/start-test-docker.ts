/** A Docker daemon with the tests' base image, for any suite: the one named, the machine's, or a fresh one. */
import { existsSync } from "node:fs";
import { answers, findDockerDaemon, type MissingDocker } from "./docker-daemon.ts";
import { ensureTestImage } from "./test-base-image.ts";
import { type TestDocker, testDocker, testImage } from "./test-docker.ts";

export interface StartedTestDocker extends TestDocker {
  /** Stops what was started for us, nothing else. Idempotent. */
  stop(): Promise<void>;
}

/**
 * ROLLDECK_TEST_DOCKER (path of a socket) where it is set, else the machine's daemon, else one of our own.
 * @throws Error when there is a daemon but the image can't be made
 */
export async function startTestDocker(
  say: (message: string) => void = (message) => process.stderr.write(`docker: ${message}\n`),
): Promise<StartedTestDocker | MissingDocker> {
  const daemon = await namedDaemon();
  if ("missing" in daemon) return daemon;
  try {
    await ensureTestImage(daemon.socket, say);
  } catch (error) {
    await daemon.stop();
    if (!existsSync("/usr/sbin/debootstrap")) {
      return {
        missing: `there is no ${testImage} and no debootstrap to make it (sudo apt-get install -y debootstrap)`,
      };
    }
    throw error;
  }
  return { socket: daemon.socket, image: testImage, stop: daemon.stop };
}

async function namedDaemon(): ReturnType<typeof findDockerDaemon> {
  const named = testDocker();
  if (named === null) return findDockerDaemon();
  if (!(await answers(named.socket))) return { missing: `no Docker daemon answers on ${named.socket}` };
  return { socket: named.socket, stop: async () => undefined };
}
