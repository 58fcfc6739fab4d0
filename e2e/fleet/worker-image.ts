/** The GPU worker's real image, variant `cpu`: built on the base of the Docker tests, and given to other daemons as an archive. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ensureTestImage } from "@rolldeck/sandbox/testing/test-base-image";
import { testImage } from "@rolldeck/sandbox/testing/test-docker";

export const realWorkerImage = "rolldeck-gpu-worker:e2e";
/** Path of an archive of the image (`docker save`), where one that was built before is to do; null: it is built. */
const builtBefore = process.env.ROLLDECK_TEST_WORKER_IMAGE || null;
const root = path.resolve(import.meta.dirname, "../..");

/** About two minutes on an idle machine, half of that for the wheels, which are kept. @throws Error with the command's last words */
export async function buildWorkerImage(socket: string, say: (line: string) => void): Promise<void> {
  if (builtBefore !== null) return load(socket, builtBefore);
  say("fetching the wheels of the GPU worker's lock");
  await run("sh", ["infra/gpu-worker/fetch-wheels.sh", "cpu", "--quiet"], { PYTHON: "python3.11" });
  await ensureTestImage(socket, say);
  say("building the GPU worker's image, without a network");
  const file = ["-f", "infra/docker/gpu-worker.Dockerfile", "--build-arg", `BASE_IMAGE=${testImage}`];
  const build = ["build", "--network", "none", "--force-rm", ...file, "-t", realWorkerImage, "."];
  await run("docker", build, { DOCKER_HOST: `unix://${socket}`, DOCKER_BUILDKIT: "0" });
}

export async function copyWorkerImage(from: string, to: string): Promise<void> {
  if (builtBefore !== null) return load(to, builtBefore);
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-image-"));
  const archive = path.join(folder, "image.tar");
  try {
    await run("docker", ["save", "-o", archive, realWorkerImage], { DOCKER_HOST: `unix://${from}` });
    await load(to, archive);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const load = (socket: string, archive: string): Promise<void> =>
  run("docker", ["load", "-q", "-i", archive], { DOCKER_HOST: `unix://${socket}` });

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes: Buffer) => {
        said = (said + bytes.toString()).slice(-3_000);
      });
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.slice(0, 2).join(" ")} ended with ${code}: ${said.trim()}`));
    });
  });
}
