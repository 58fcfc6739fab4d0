/** What pods can't be held to, for people. */
export const kubernetesLimits: readonly string[] = [
  "processes are bounded by the nodes' own limit, not by the sandbox's",
  "networks are closed only where the cluster enforces network policies",
  "no allow-lists, and no images built on the spot",
  "images need bash, env, head and tar",
];
