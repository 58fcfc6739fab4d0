/** The Kubernetes runtime over the API of the tests, also for processes that a test starts and kills. */
import { readFileSync } from "node:fs";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { Cluster } from "../src/kubernetes/cluster.ts";
import { KubernetesRuntime } from "../src/kubernetes/kubernetes-runtime.ts";

/** Path of the kubeconfig, in the environment: a started process has no other way to know. */
export const kubeconfigVariable = "ROLLDECK_TEST_KUBECONFIG";

export function makeRuntime(deployment: string): SandboxRuntime {
  return new KubernetesRuntime({
    cluster: new Cluster(readFileSync(process.env[kubeconfigVariable] ?? "", "utf8"), "rolldeck"),
    deployment,
    now: () => Date.now(),
    onTrouble: (message, error) => process.stderr.write(`${message}: ${String(error)}\n`),
  });
}
