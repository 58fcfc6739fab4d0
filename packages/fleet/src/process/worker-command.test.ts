import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { expect, test } from "vitest";
import { keeperCommand } from "./worker-command.ts";

const spec: LaunchSpec = {
  ...{ workerId: "p1", claim: 1, runId: "r1", role: "colocated", device: "cpu", devices: ["cpu-here-1"] },
  ...{ memoryMb: null, image: "unused", key: "tml-canary-0001", address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
};
const scene = { python: "python3", worker: undefined, modelRoots: "/models", folder: "/f", saved: "/s/r1", reads: [] };

test("a worker is told where it saves, whose files it reads besides, and by its role whether it leaves them alone", () => {
  const { args } = keeperCommand(spec, scene);
  expect(args.join(" ")).toContain("--data-dir /s/r1 --model-roots /models --device cpu");
  expect(args).not.toContain("--sampler");
  expect(args).not.toContain("--also-read");
  const reader = keeperCommand({ ...spec, role: "reader" }, { ...scene, reads: ["/s/r0"] }).args.join(" ");
  expect(reader).toContain("--also-read /s/r0 --sampler");
  expect(`${args} ${reader}`).not.toContain("canary");
});
