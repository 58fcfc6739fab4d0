/** How strong pods are and what they can't be held to, for people. */
export const kubernetesIsolation = "containers of a cluster (as strong as its nodes' runtime)";

export const kubernetesLimits: readonly string[] = [
  "processes are bounded by the nodes' own limit, not by the sandbox's",
  "disk is bounded by eviction: a pod that grows past it is ended with all that is in it",
  "a pod has one user, that of the whole sandbox; its keeper has it, too: who traces that may keep the pod up to its whole life",
  "networks are closed only where the cluster enforces network policies",
  "no allow-lists, and no images built on the spot",
  "images need bash, env, head and tar",
];
