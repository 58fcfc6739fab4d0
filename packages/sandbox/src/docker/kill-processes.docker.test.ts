/** Ending processes where the image's own shell can't help any more. */
import { randomBytes } from "node:crypto";
import { noResources, sandboxId } from "@rolldeck/contracts/ports/sandbox";
import { afterAll, describe, expect, test } from "vitest";
import { makeRuntime } from "../../testing/docker-runtime.ts";
import { rawContainer } from "../../testing/raw-docker.ts";
import { testDocker } from "../../testing/test-docker.ts";

const found = testDocker();
const signal = new AbortController().signal;
const runtime = makeRuntime(`kill-${randomBytes(4).toString("hex")}`);

describe.skipIf(found === null)("a container without", () => {
  afterAll(() => runtime.disconnect());

  test.each([
    ["a loader", "rm -rf /lib /lib64 /usr/lib /usr/lib64"],
    ["a shell", "rm -f /bin/sh /usr/bin/sh /bin/dash /bin/bash /usr/bin/dash /usr/bin/bash"],
  ])("%s goes on as it is", async (_what, wreck) => {
    const id = sandboxId(randomBytes(20));
    const sandbox = await runtime.open(
      {
        id,
        image: { kind: "name", name: found?.image ?? "" },
        resources: noResources,
        network: { mode: "none" },
        user: "root",
        workdir: "/srv",
        environment: {},
        services: [],
        labels: {},
        mounts: [],
        leaseMs: 60_000,
        maxLifeMs: 600_000,
      },
      signal,
    );
    try {
      await sandbox.exec({ command: ["/bin/sh", "-c", wreck], timeoutMs: 60_000 }, signal);
      const container = rawContainer(found?.socket ?? "", id);
      const before = (await container.inspect()).State;
      await sandbox.killAll(signal);
      const after = (await container.inspect()).State;
      expect([after.Running, after.StartedAt]).toEqual([true, before.StartedAt]);
    } finally {
      await runtime.close(id, signal);
    }
  });
});
