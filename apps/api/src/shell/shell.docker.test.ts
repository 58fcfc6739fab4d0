/** A shell in a container: a terminal of its own, beside an agent that goes on undisturbed, and nothing left when it is over. */
import { noResources, type Sandbox, type SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { ShellEnd } from "@rolldeck/contracts/wire/shell";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import { seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import { ShellConnection } from "@rolldeck/realtime/client/shell-connection";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { testDocker } from "@rolldeck/sandbox/testing/test-docker";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startTestApi, type TestApi } from "../../testing/start-api.ts";

const docker = testDocker();
const signal = AbortSignal.timeout(120_000);

describe.skipIf(docker === null)("a shell in a container", () => {
  let api: TestApi;
  let runtime: SandboxRuntime;
  let sandbox: Sandbox;
  let runId: string;
  const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 30_000, interval: 20 });

  beforeAll(async () => {
    const sandboxes = parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: docker?.socket }, "/");
    api = await startTestApi({ sandboxes });
    const { pool } = api.database;
    const deployment = await readDeployment(pool);
    const scene = { settings: sandboxes, deployment, stateFolder: api.dataFolder, onTrouble: () => undefined };
    runtime = new SandboxRuntimes(scene).get("docker");
    runId = await seedRun(pool);
    const { rolloutIds } = await seedStep(pool, runId, { step: 1, rollouts: [{ reward: null, ending: null }] });
    const id = await seedSandbox(pool, { runId, rolloutId: rolloutIds[0] ?? "", runtime: "docker" });
    sandbox = await runtime.open(
      {
        ...{ id, labels: {}, mounts: [], services: [], environment: {}, workdir: "/tmp", leaseMs: 120_000 },
        ...{ image: { kind: "name", name: docker?.image ?? "" }, maxLifeMs: 600_000, network: { mode: "none" } },
        resources: { ...noResources, pids: 64, memoryMb: 256 },
      },
      signal,
    );
  });
  afterAll(async () => {
    await runtime?.close(sandbox.id, signal);
    await runtime?.disconnect();
    await api?.close();
  });

  const said = async (...command: string[]) => {
    const { stdout } = await sandbox.exec({ command, timeoutMs: 30_000 }, signal);
    return Buffer.from(stdout.head).toString().trim();
  };
  const open = () => {
    const shell = { text: "", isOpen: false, end: null as ShellEnd | null };
    const connection = new ShellConnection({
      url: api.url,
      token: api.ownerToken,
      asked: { runId, sandboxId: sandbox.id, columns: 100, rows: 40 },
      onOpen: () => {
        shell.isOpen = true;
      },
      onOutput: (bytes) => {
        shell.text += Buffer.from(bytes).toString();
      },
      onEnd: (end) => {
        shell.end = end;
      },
    });
    return { shell, connection, type: (text: string) => connection.write(Buffer.from(text)) };
  };

  it("has a terminal of its size, where it interrupts, and leaves the agent's processes alone", async () => {
    const agent = await sandbox.spawn({ command: ["sleep", "987"] }, signal);
    const { shell, connection, type } = open();
    await until(() => expect(shell).toMatchObject({ isOpen: true, end: null }));
    type("tty; stty size; echo in=$PWD\n");
    await until(() => expect(shell.text).toMatch(/\/dev\/pts\/\d+\s+40 100\s+in=\/tmp/));
    connection.resize(132, 50);
    type(`while [ "$(stty size)" != "50 132" ]; do sleep 0.1; done; echo re"sized"\n`);
    await until(() => expect(shell.text).toContain("resized"));
    type("sleep 654\n");
    await until(async () => expect(await said("pgrep", "-c", "-f", "^sleep 654")).toBe("1"));
    type("\u0003");
    await until(async () => expect(await said("pgrep", "-c", "-f", "^sleep 654")).toBe("0"));
    type("nohup sleep 321 >/dev/null 2>&1 &\n");
    await until(async () => expect(await said("pgrep", "-c", "-f", "^sleep 321")).toBe("1"));
    connection.close();
    await until(async () => expect(await said("pgrep", "-c", "-f", "^sleep 321")).toBe("0"));
    expect(await said("pgrep", "-c", "-f", "^bash -i")).toBe("0");
    expect(await said("pgrep", "-c", "-f", "^sleep 987")).toBe("1");
    await agent.close();
  });

  it("ends with its sandbox, and says so", async () => {
    const { shell } = open();
    await until(() => expect(shell).toMatchObject({ isOpen: true, end: null }));
    await runtime.close(sandbox.id, signal);
    await until(() => expect(shell.end?.reason).toMatch(/the sandbox is gone|the shell ended with 137/));
  });
});
