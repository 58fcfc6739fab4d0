/**
 * The image of the Docker tests, made here since none can be pulled: Debian by debootstrap with what agents and graders use.
 * Its archive is kept between runs, so that only the first pays for it.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { testImage } from "./test-docker.ts";

/** What grading needs of Python lies in system packages: tests of real source packages import them. */
const packages = [
  ...["python3", "git", "python3-pytest", "patch", "procps"],
  ...["python3-markupsafe", "python3-asgiref", "python3-tz", "python3-sqlparse"],
];
/** Package lists, manuals and translations: half of the size. */
const strip = `cd "$0" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/* \
usr/share/info/* var/log/*.log && printf '127.0.0.1\\tlocalhost\\n::1\\tlocalhost\\n' >etc/hosts`;

/** Makes the image where the daemon does not have it; about a minute, a few seconds when it was made before. */
export async function ensureTestImage(socket: string, say: (message: string) => void): Promise<void> {
  const docker = new Docker({ socketPath: socket });
  if (await has(docker)) return;
  const archive = await baseArchive(say);
  const [repo, tag] = testImage.split(":");
  const answer = await docker.importImage(createReadStream(archive), { repo, tag });
  await new Promise<void>((resolve, reject) => {
    answer.on("error", reject).on("end", resolve).resume();
  });
  if (!(await has(docker))) throw new Error(`the daemon did not take the archive of ${testImage}`);
}

async function has(docker: Docker): Promise<boolean> {
  const named = await docker.listImages({ filters: { reference: [testImage] } });
  return named.length > 0;
}

async function baseArchive(say: (message: string) => void): Promise<string> {
  const recipe = createHash("sha256")
    .update(JSON.stringify([packages, strip]))
    .digest("hex")
    .slice(0, 16);
  const cache = join(tmpdir(), `rolldeck-test-cache-${userInfo().uid}`);
  await mkdir(cache, { recursive: true });
  const archive = join(cache, `base-${recipe}.tar`);
  if (existsSync(archive)) return archive;
  say("making the base image of the Docker tests with debootstrap (about a minute, once)");
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-base-"));
  try {
    const root = join(folder, "root");
    await run("debootstrap", ["--variant=minbase", `--include=${packages.join(",")}`, "bookworm", root]);
    await run("/bin/sh", ["-c", strip, root]);
    const part = join(cache, `base-${recipe}.${process.pid}.part`);
    await run("tar", ["-C", root, "--numeric-owner", "-cf", part, "."]);
    await rename(part, archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return archive;
}

function run(command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const keep = (bytes: Buffer): void => {
      said = (said + bytes.toString()).slice(-2_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with ${code}: ${said.trim()}`));
    });
  });
}
