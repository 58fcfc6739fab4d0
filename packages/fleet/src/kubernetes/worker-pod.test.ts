import { KubernetesEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { expect, test } from "vitest";
import { workerPod } from "./worker-pod.ts";

const endpoint = KubernetesEndpoint.parse({ kind: "kubernetes", kubeconfig: "/k", checkpointClaim: "saved" });
const spec: LaunchSpec = {
  ...{ workerId: "w1", claim: 3, runId: "r1", role: "trainer", device: "gpu", devices: ["gpus-gpu-0"] },
  ...{ memoryMb: null, image: "worker", key: "tml-canary-0001", address: "127.0.0.1" },
  ...{ reads: [], checkpointFolder: null, modelFolder: null },
};

test("a sampler is told to leave the files to the trainer, with which it shares the run's folder", () => {
  const [trainer, sampler] = [spec, { ...spec, workerId: "w2", role: "sampler" as const }].map(
    (one) => workerPod(one, { fleet: "f", host: "gpus", endpoint }).spec?.containers[0]?.args,
  );
  expect(sampler).toContain("--sampler");
  expect(trainer).not.toContain("--sampler");
  expect(sampler?.filter((flag) => flag !== "--sampler")).toEqual(trainer);
});
