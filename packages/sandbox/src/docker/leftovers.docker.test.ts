/** What is left in the daemon of processes that were killed (-9) while they opened sandboxes, and for how long. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { noResources, type SandboxSpec, sandboxId } from "@rolldeck/contracts/ports/sandbox";
import Docker from "dockerode";
import { afterAll, describe, expect, test } from "vitest";
import { makeRuntime } from "../../testing/docker-runtime.ts";
import { countContainers } from "../../testing/raw-docker.ts";
import { testDocker } from "../../testing/test-docker.ts";
import { besideOwners } from "./beside.ts";
import { labels } from "./container-options.ts";
import { isDeadOwner, thisOwner } from "./owner.ts";

const found = testDocker();
const socket = found?.socket ?? "";
const docker = new Docker({ socketPath: socket });
const image = { kind: "name", name: found?.image ?? "" } as const;
const signal = new AbortController().signal;
const newDeployment = (): string => `left-${randomBytes(4).toString("hex")}`;
/** This process's number, given to another by now. */
const deadOwner = thisOwner().replace(/\d+$/, "1");

const spec = (): SandboxSpec => ({
  id: sandboxId(randomBytes(20)),
  image,
  resources: { ...noResources, memoryMb: 64 },
  network: { mode: "none" },
  workdir: "/srv",
  environment: {},
  services: [],
  labels: {},
  mounts: [],
  leaseMs: 10_000,
  maxLifeMs: 600_000,
});

const children: ChildProcess[] = [];
function opening(deployment: string, count: number): ChildProcess {
  const module = fileURLToPath(new URL("../../testing/docker-runtime.ts", import.meta.url));
  const holder = fileURLToPath(new URL("../../testing/conformance/hold-sandboxes.ts", import.meta.url));
  const specs = JSON.stringify(Array.from({ length: count }, spec));
  const child = spawn(process.execPath, ["--import", "tsx", holder, module, deployment, specs], { stdio: "ignore" });
  children.push(child);
  return child;
}

describe.skipIf(found === null)("leftovers of killed processes", () => {
  afterAll(() => {
    for (const child of children) child.kill("SIGKILL");
  });

  test("whoever made a thing is known to live or to be dead, or is not known", async () => {
    expect(await isDeadOwner(thisOwner())).toBe(false);
    expect(await isDeadOwner(deadOwner)).toBe(true);
    for (const unknown of [undefined, "", "x", thisOwner().replace(/^\w+/, "00000000")]) {
      expect(await isDeadOwner(unknown)).toBe(false);
    }
  });

  test("with all of this killed, what runs ends with its lease; the next process removes the rest", async () => {
    const deployment = newDeployment();
    const both = [opening(deployment, 10), opening(deployment, 10)];
    const label = [`${labels.deployment}=${deployment}`];
    const running = () => docker.listContainers({ filters: { label } });
    // In the middle of it: some run, some are made, some are still asked for.
    await expect.poll(async () => (await running()).length, { timeout: 60_000, interval: 20 }).toBeGreaterThan(0);
    for (const child of both) child.kill("SIGKILL");
    await expect.poll(running, { timeout: 40_000, interval: 500 }).toEqual([]);
    const next = makeRuntime(deployment);
    await next.list(signal);
    await expect.poll(() => countContainers(socket, deployment), { timeout: 30_000, interval: 500 }).toBe(0);
    await next.disconnect();
  });

  test("what a dead process was making is removed at once; what a living one is making stays", async () => {
    const deployment = newDeployment();
    const ids = { dead: sandboxId(randomBytes(20)), living: sandboxId(randomBytes(20)) };
    const own = (owner: string, id: string, role: string) => ({
      ...{ [labels.deployment]: deployment, [labels.owner]: owner, [labels.sandbox]: id, [labels.role]: role },
    });
    const owners = [
      [deadOwner, ids.dead],
      [thisOwner(), ids.living],
    ] as const;
    for (const [owner, id] of owners) {
      const name = `rolldeck-${id}`;
      await docker.createContainer({ name, Image: image.name, Cmd: ["true"], Labels: own(owner, id, "sandbox") });
      // Of another sandbox, whose own container is not there yet.
      await docker.createNetwork({ Name: `${name}-net`, Internal: true, Labels: own(owner, `${id}-beside`, "beside") });
    }
    const runtime = makeRuntime(deployment);
    const listed = async () => (await runtime.list(signal)).map(({ id, state }) => `${id} ${state}`);
    await expect.poll(listed, { timeout: 30_000 }).toEqual([`${ids.living} running`]);
    await expect
      .poll(async () => [...(await besideOwners(docker, deployment)).keys()], { timeout: 30_000 })
      .toEqual([`${ids.living}-beside`]);
    await runtime.close(ids.living, signal);
    await runtime.disconnect();
    await docker.getNetwork(`rolldeck-${ids.living}-net`).remove();
    expect(await countContainers(socket, deployment)).toBe(0);
  });
});
