import { fileURLToPath } from "node:url";
import { describe } from "vitest";
import { describeConformance } from "../../testing/conformance.ts";
import { makeRuntime } from "../../testing/docker-runtime.ts";
import { testDocker, testImage } from "../../testing/test-docker.ts";

describe.skipIf(testDocker() === null)("with a Docker daemon", () => {
  describeConformance("docker", makeRuntime, {
    image: { kind: "name", name: testImage },
    folder: "/srv",
    smallFolder: "/tmp",
    otherUser: "nobody",
    told: {},
    holder: { module: fileURLToPath(new URL("../../testing/docker-runtime.ts", import.meta.url)) },
    resets: true,
    many: 64,
  });
});
