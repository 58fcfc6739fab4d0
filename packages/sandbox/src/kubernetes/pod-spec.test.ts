import { noResources, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import fc from "fast-check";
import { expect, test } from "vitest";
import { labelValue, podOf } from "./pod-spec.ts";

const spec = (change: Partial<SandboxSpec> = {}): SandboxSpec => ({
  id: "sbx_0123456789abcdefghij",
  image: { kind: "name", name: "some/image:1" },
  resources: noResources,
  network: { mode: "none" },
  workdir: "/testbed",
  environment: { A: "1" },
  services: [],
  labels: { run: "r1" },
  mounts: [],
  leaseMs: 60_000,
  maxLifeMs: 3_600_000,
  ...change,
});
const podSpec = (change: Partial<SandboxSpec> = {}) => podOf(spec(change), "deck", 1_000).spec;

test("a pod has nothing that it does not need", () => {
  const pod = podSpec();
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    restartPolicy: "Never",
    activeDeadlineSeconds: 3_600,
  });
  for (const container of pod?.containers ?? []) {
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      privileged: false,
      capabilities: { drop: ["ALL"] },
    });
    expect(Object.keys(container.resources?.limits ?? {}).sort()).toEqual(["cpu", "ephemeral-storage", "memory"]);
  }
});

test("services stand beside it and are found by their names", () => {
  const service = {
    name: "db",
    image: { kind: "name", name: "postgres:16" } as const,
    command: null,
    environment: { POSTGRES_PASSWORD: "x" },
    resources: noResources,
    healthcheck: { command: ["pg_isready"], intervalMs: 1_000, timeoutMs: 500, startMs: 0, retries: 5 },
  };
  const pod = podSpec({ services: [service] });
  expect(pod?.hostAliases).toEqual([{ ip: "127.0.0.1", hostnames: ["db"] }]);
  expect(pod?.containers.map(({ name }) => name)).toEqual(["main", "service-db"]);
  expect(pod?.containers[1]?.readinessProbe).toMatchObject({ exec: { command: ["pg_isready"] }, failureThreshold: 5 });
});

test.each<[string, Partial<SandboxSpec>]>([
  ["an allow-list", { network: { mode: "allow-list", hosts: ["example.org"] } }],
  ["mounts", { mounts: [{ source: "/", target: "/host", readOnly: true }] }],
  ["without an image", { image: null }],
  ["built", { image: { kind: "build", context: "/x", dockerfile: "Dockerfile", timeoutMs: 1 } }],
  ["a number", { user: "agent" }],
])("what a pod can't have is refused by name: %s", (words, change) => {
  expect(() => podOf(spec(change), "deck", 1_000)).toThrow(words);
});

test("any label is one that Kubernetes takes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (value) => {
      expect(labelValue(value)).toMatch(/^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/);
    }),
  );
});
