/**
 * What sandboxes' pods may reach, by their label. A cluster whose network plugin enforces no policies enforces these neither: the
 * runtime's `limits` say so.
 */
import type { V1NetworkPolicy } from "@kubernetes/client-node";
import { labelPrefix, managedBy } from "./pod-spec.ts";

const network = `${labelPrefix}network`;

/** Ranges that no public sandbox may reach: the cluster's and the operator's own networks, and cloud metadata. */
const privateRanges = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "127.0.0.0/8",
];
const privateRangesV6 = ["fc00::/7", "fe80::/10", "::1/128"];

export function policies(): V1NetworkPolicy[] {
  return [
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "rolldeck-no-network", labels: { ...managedBy } },
      spec: { podSelector: { matchLabels: { ...managedBy } }, policyTypes: ["Ingress", "Egress"] },
    },
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "rolldeck-public-network", labels: { ...managedBy } },
      spec: {
        podSelector: { matchLabels: { ...managedBy, [network]: "public" } },
        policyTypes: ["Egress"],
        egress: [
          {
            to: [
              { ipBlock: { cidr: "0.0.0.0/0", except: privateRanges } },
              { ipBlock: { cidr: "::/0", except: privateRangesV6 } },
            ],
          },
          // Names are resolved by the cluster's own server.
          {
            to: [{ namespaceSelector: {}, podSelector: { matchLabels: { "k8s-app": "kube-dns" } } }],
            ports: [
              { port: 53, protocol: "UDP" },
              { port: 53, protocol: "TCP" },
            ],
          },
        ],
      },
    },
  ];
}
