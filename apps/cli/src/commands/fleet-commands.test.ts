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
  [
    { ray: "http://10.0.0.5:8265" },
    {
      ...{ kind: "ray", url: "http://10.0.0.5:8265", tokenFile: null },
      entrypoint: "exec python3 -m rolldeck_gpu_worker.keeper",
    },
  ],
  [
    { ray: "https://[fd00::5]/ray", tokenFile: "/t", entrypoint: "exec /opt/deck/keeper" },
    { kind: "ray", url: "https://[fd00::5]/ray", tokenFile: "/t", entrypoint: "exec /opt/deck/keeper" },
  ],
  [{ process: true }, { kind: "process" }],
] as const)("%j is an endpoint", (flags, endpoint) => {
  expect(HostEndpoint.parse(endpointOf(flags))).toEqual(endpoint);
});

it.each([
  [{ docker: "rack1" }, "--docker must look like"],
  [{ docker: "http://rack1" }, "--docker must look like"],
  [{ docker: "tcp://rack1" }, "--certs names the folder"],
  [{ docker: "ssh://deck:secret@rack1" }, "no password"],
  [{}, "one of --docker, --kubernetes, --ray and --process"],
  [{ docker: "unix:///s", kubernetes: "deck" }, "one of --docker, --kubernetes, --ray and --process"],
  [{ kubernetes: "deck" }, "--kubeconfig names the file"],
  [{ kubernetes: "deck/", kubeconfig: "/k" }, "--kubernetes must look like"],
  [{ kubernetes: "deck", kubeconfig: "/k", nodes: "gpu" }, "--nodes: gpu is not label=value"],
  [{ ray: "http://10.0.0.5:8265", process: true }, "one of --docker"],
  [{ ray: "http://ray.example.org:8265" }, "--ray must have a loopback or private address"],
  [{ ray: "http://8.8.8.8:8265" }, "--ray must have a loopback or private address"],
  // How others write an address of ours, and ours one that is another's.
  [{ ray: "http://10.0.0.5.example.org" }, "--ray must have a loopback or private address"],
  [{ ray: "http://deck:secret@10.0.0.5:8265" }, "--ray must hold no password"],
  [{ ray: "ray://10.0.0.5:10001" }, "--ray must be the http or https address"],
  [{ ray: "10.0.0.5:8265" }, "--ray must be the http or https address"],
  [{ ray: "http://10.0.0.5:8265", tokenFile: "token" }, "--token-file must be an absolute path"],
  [{ ray: "http://10.0.0.5:8265", entrypoint: "a\nb" }, "--entrypoint must not contain control characters"],
] as const)("%j is refused, and the flag named", (flags, words) => {
  expect(() => endpointOf(flags)).toThrow(words);
  expect(() => endpointOf(flags)).not.toThrow("secret");
});
