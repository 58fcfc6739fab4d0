/**
 * A Docker daemon for tests: one that answers already, else one of our own (root only) on a socket in a temporary folder. Our
 * own is gone with this process however it ends: a shell that outlives us waits for the end of a pipe, stops the daemon, lets go
 * of its mounts and removes its folder.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

export interface DockerDaemon {
  /** Path of its socket. */
  readonly socket: string;
  /** Ends it when we started it, else nothing. Idempotent. */
  stop(): Promise<void>;
}
/** One that was started here: it may be done to whatever happens to daemons. */
export interface OwnDockerDaemon extends DockerDaemon {
  /** Takes connections and answers none, until it is thawed. */
  freeze(): void;
  thaw(): void;
  /** Ends it with this signal and starts it again over the same folders; resolves when it answers. */
  restart(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}
export interface MissingDocker {
  /** Why there is none, and the command that helps where there is one. */
  readonly missing: string;
}

const systemSocket = "/var/run/docker.sock";
const prefix = "rolldeck-docker-";
const startMs = 30_000;

/** Whether a daemon answers on this socket. */
export function answers(socket: string, timeoutMs = 5_000): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ socketPath: socket, path: "/_ping", agent: false, timeout: timeoutMs }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
    asked.end();
  });
}

/** The daemon of the machine where it answers, else a fresh one. */
export async function findDockerDaemon(): Promise<DockerDaemon | MissingDocker> {
  if (await answers(systemSocket)) return { socket: systemSocket, stop: async () => undefined };
  return startDockerDaemon();
}

/** A daemon of our own, with no image and no network. @param flags of its own beside those, which they override */
export async function startDockerDaemon(flags: readonly string[] = []): Promise<OwnDockerDaemon | MissingDocker> {
  const dockerd = ["/usr/sbin/dockerd", "/usr/bin/dockerd", "/usr/local/bin/dockerd"].find((file) => existsSync(file));
  if (dockerd === undefined) {
    return { missing: "no Docker daemon answers and dockerd is not installed (sudo apt-get install -y docker.io)" };
  }
  if (process.getuid?.() !== 0) return { missing: "no Docker daemon answers, and only root may start one" };
  mountControlGroups();
  sweepLeftovers();
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const socket = join(folder, "docker.sock");
  const keeper = spawn("/bin/sh", ["-c", keeperScript, folder, dockerd, ...daemonFlags(folder), ...flags], {
    detached: true,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const stop = stopper(keeper);
  let said = "";
  keeper.stderr?.on("data", (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4_000);
  });
  const ended = new Promise<void>((resolve) => keeper.once("close", () => resolve()));
  const giveUpAt = Date.now() + startMs;
  while (Date.now() < giveUpAt && keeper.exitCode === null) {
    if (await answers(socket)) return { socket, stop, ...ways(folder, socket) };
    await Promise.race([delay(50), ended]);
  }
  await stop();
  return { missing: `dockerd did not come up here: ${said.trim() || "it said nothing"}` };
}

/** No bridge and no firewall: what a container of a test needs, and what most machines that run tests allow. */
function daemonFlags(folder: string): string[] {
  const at = (name: string): string => join(folder, name);
  const folders = ["--data-root", at("data"), "--exec-root", at("exec"), "--pidfile", at("pid")];
  const network = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"];
  return ["-H", `unix://${at("docker.sock")}`, ...folders, ...network, "--userland-proxy=false", "--log-driver=none"];
}

/** Removes the folder of a daemon that is gone, with the mounts that it left, deepest first. */
const cleanUp = `clean() {
  grep -o " $1/[^ ]*" /proc/mounts | sort -r | while read -r point; do umount -l "$point" 2>/dev/null; done
  rm -rf "$1"
}`;
const keeperScript = `${cleanUp}
begin() { rm -f "$0/pid" "$0/exec/containerd/containerd.pid"; "$@" 3<&- >>"$0/log" 2>&1 </dev/null & server=$!; echo $server >"$0/server"; }
begin "$@"
(read -r _ <&3; echo >"$0/over"; read -r server <"$0/server"; kill -TERM $server; kill -CONT $server) 2>/dev/null &
watcher=$!
exec 3<&-
wait $server
while [ -e "$0/again" ] && ! [ -e "$0/over" ]; do rm "$0/again"; begin "$@"; wait $server; done
kill $watcher 2>/dev/null
tail -n 8 "$0/log" >&2
clean "$0"`;

function stopper(keeper: ChildProcess): () => Promise<void> {
  // Neither the shell nor our end of its pipe may keep this process alive.
  keeper.unref();
  const pipe = keeper.stdio[3];
  for (const stream of [pipe, keeper.stderr]) {
    if (stream && "unref" in stream && typeof stream.unref === "function") stream.unref();
  }
  return async () => {
    if (keeper.exitCode !== null || keeper.signalCode !== null) return;
    keeper.ref();
    const gone = new Promise<void>((resolve) => keeper.once("exit", () => resolve()));
    if (pipe && "end" in pipe) (pipe satisfies Writable).end();
    await gone;
  };
}

function ways(folder: string, socket: string): Omit<OwnDockerDaemon, "socket" | "stop"> {
  const server = (): number => Number(readFileSync(join(folder, "server"), "utf8"));
  return {
    freeze: () => void process.kill(server(), "SIGSTOP"),
    thaw: () => void process.kill(server(), "SIGCONT"),
    restart: async (signal) => {
      const before = server();
      writeFileSync(join(folder, "again"), "");
      process.kill(before, signal);
      for (const giveUpAt = Date.now() + startMs; Date.now() < giveUpAt; await delay(50)) {
        if (server() !== before && (await answers(socket))) return;
      }
      throw new Error("dockerd did not come up again");
    },
  };
}

/** Folders of daemons whose watcher was killed with them. */
function sweepLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const folder = join(tmpdir(), name);
    const pidFile = join(folder, "pid");
    // One that has no file yet may be starting.
    if (!existsSync(pidFile) || isAlive(Number(readFileSync(pidFile, "utf8")))) continue;
    spawnSync("/bin/sh", ["-c", `${cleanUp}\nclean "$0"`, folder], { stdio: "ignore" });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Machines that are themselves containers may come without control groups; the daemon can't run without. */
function mountControlGroups(): void {
  const root = "/sys/fs/cgroup";
  if (existsSync(join(root, "cgroup.controllers")) || existsSync(join(root, "memory"))) return;
  if (spawnSync("/bin/sh", ["-c", `mount -t cgroup2 cgroup2 ${root}`]).status === 0) {
    if (readFileSync(join(root, "cgroup.controllers"), "utf8").includes("memory")) return;
    spawnSync("umount", [root]);
  }
  const script = `mount -t tmpfs -o mode=755 cgroup ${root} || exit 1
    awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups | while read -r name; do
      mkdir -p ${root}/$name && mount -t cgroup -o "$name" cgroup ${root}/$name
    done`;
  spawnSync("/bin/sh", ["-c", script], { stdio: "ignore" });
}
