import { HostEndpoint } from "@rolldeck/contracts/host-endpoint";
import { expect, it } from "vitest";
import { endpointOf } from "./fleet-commands.ts";

it.each([
  [{ docker: "unix:///run/my%20docker.sock" }, { kind: "socket", path: "/run/my docker.sock" }],
  [
    { docker: "tcp://10.0.0.5", certs: "/c" },
    { kind: "tcp", host: "10.0.0.5", port: 2376, certFolder: "/c" },
  ],
  [
    { docker: "tcp://[fd00::5]:99", certs: "/c" },
    { kind: "tcp", host: "fd00::5", port: 99, certFolder: "/c" },
  ],
  [
    { docker: "ssh://deck@rack1:2222", key: "/k", knownHosts: "/h" },
    { kind: "ssh", host: "rack1", port: 2222, user: "deck", keyFile: "/k", knownHostsFile: "/h" },
  ],
  [
    { docker: "ssh://rack1" },
    { kind: "ssh", host: "rack1", port: 22, user: null, keyFile: null, knownHostsFile: null },
  ],
  [
    { kubernetes: "arn:aws/prod/deck", kubeconfig: "/k", nodes: "pool=gpu,zone=a", claim: "saved" },
    {
      ...{ kind: "kubernetes", kubeconfig: "/k", context: "arn:aws/prod", namespace: "deck" },
      ...{ nodeSelector: { pool: "gpu", zone: "a" }, checkpointClaim: "saved" },
    },
  ],
  [
    { kubernetes: "deck", kubeconfig: "/k" },
    {
      ...{ kind: "kubernetes", kubeconfig: "/k", context: null, namespace: "deck" },
      ...{ nodeSelector: {}, checkpointClaim: null },
    },
  ],
] as const)("%j is an endpoint", (flags, endpoint) => {
  expect(HostEndpoint.parse(endpointOf(flags))).toEqual(endpoint);
});

it.each([
  [{ docker: "rack1" }, "--docker must look like"],
  [{ docker: "http://rack1" }, "--docker must look like"],
  [{ docker: "tcp://rack1" }, "--certs names the folder"],
  [{ docker: "ssh://deck:secret@rack1" }, "no password"],
  [{}, "one of --docker and --kubernetes"],
  [{ docker: "unix:///s", kubernetes: "deck" }, "one of --docker and --kubernetes"],
  [{ kubernetes: "deck" }, "--kubeconfig names the file"],
  [{ kubernetes: "deck/", kubeconfig: "/k" }, "--kubernetes must look like"],
  [{ kubernetes: "deck", kubeconfig: "/k", nodes: "gpu" }, "--nodes: gpu is not label=value"],
] as const)("%j is refused, and the flag named", (flags, words) => {
  expect(() => endpointOf(flags)).toThrow(words);
  expect(() => endpointOf(flags)).not.toThrow("secret");
});
