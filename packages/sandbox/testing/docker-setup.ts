/** Global setup of the Docker suite: its tests find the daemon by the environment; without one they skip and this says why. */
import { startTestDocker } from "./start-test-docker.ts";

export async function setup(): Promise<() => Promise<void>> {
  const docker = await startTestDocker();
  if ("missing" in docker) {
    process.stderr.write(`docker: tests that need a daemon are skipped: ${docker.missing}\n`);
    delete process.env.ROLLDECK_TEST_DOCKER;
    return async () => undefined;
  }
  process.env.ROLLDECK_TEST_DOCKER = docker.socket;
  return docker.stop;
}
