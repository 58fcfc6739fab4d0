/** Runtimes over the daemon of the tests, with a folder of their own, for tests of what is built on sandboxes. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noResources, type Sandbox, type SandboxRuntime, sandboxId } from "@rolldeck/contracts/ports/sandbox";
import { SandboxRuntimes } from "../src/runtimes.ts";
import { parseSandboxSettings } from "../src/settings.ts";
import { testDocker, testImage } from "./test-docker.ts";

const signal = new AbortController().signal;

export class DockerRuntimes {
  readonly folder: string;
  readonly runtimes: SandboxRuntimes;

  /** @param name of its deployment on the daemon, beside those of other test files */
  constructor(name: string) {
    this.folder = mkdtempSync(join(tmpdir(), `${name}-`));
    this.runtimes = new SandboxRuntimes({
      settings: parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: testDocker()?.socket ?? "" }, this.folder),
      deployment: `${name}-${process.pid}`,
      stateFolder: this.folder,
      onTrouble: (message, error) => console.error(message, error),
    });
  }

  get docker(): SandboxRuntime {
    return this.runtimes.get("docker");
  }

  /** A sandbox of the test image that works in /tmp, without network. */
  open(): Promise<Sandbox> {
    const spec = {
      ...{ id: sandboxId(randomBytes(20)), labels: { purpose: "test" }, workdir: "/tmp" },
      ...{ environment: {}, services: [], mounts: [], leaseMs: 300_000, maxLifeMs: 600_000 },
      image: { kind: "name", name: testImage },
      resources: { ...noResources, memoryMb: 512, pids: 128 },
      network: { mode: "none" },
    } as const;
    return this.docker.open(spec, signal);
  }

  /** Closes what a test left. */
  async close(): Promise<void> {
    for (const { id } of await this.docker.list(signal)) await this.docker.close(id, signal);
    await this.runtimes.disconnect();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
