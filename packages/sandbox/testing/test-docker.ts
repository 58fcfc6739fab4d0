/** The Docker daemon that the setup of the suite found or started, and the image it made. */
export interface TestDocker {
  /** Path of the daemon's socket. */
  readonly socket: string;
  /** Debian with bash, Python 3, git, pytest and patch. */
  readonly image: string;
}

export const testImage = "rolldeck-test-base:bookworm";

/** Null where there is none: tests that need one are then skipped, and the suite says why. */
export function testDocker(): TestDocker | null {
  const socket = process.env.ROLLDECK_TEST_DOCKER;
  return socket === undefined || socket === "" ? null : { socket, image: testImage };
}
