/**
 * System packages the suites need. Installed when running as root on a Debian family system, or when asked; otherwise the
 * suites that need them are skipped and name the command that brings them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

interface SystemPackage {
  readonly name: string;
  readonly command: string;
  readonly packages: readonly string[];
}

export const systemPackages: readonly SystemPackage[] = [
  { name: "Chromium", command: "chromium", packages: ["chromium"] },
  { name: "Redis", command: "redis-server", packages: ["redis-server"] },
  { name: "Docker", command: "dockerd", packages: ["docker.io", "docker-compose"] },
  // The daemon asks for it even where it may change nothing.
  { name: "iptables", command: "iptables", packages: ["iptables"] },
  { name: "sshd", command: "sshd", packages: ["openssh-server"] },
  { name: "bubblewrap", command: "bwrap", packages: ["bubblewrap"] },
  { name: "debootstrap", command: "debootstrap", packages: ["debootstrap"] },
];

/** The command that brings a missing package. */
export const howToInstall = (item: SystemPackage): string => `sudo apt-get install -y ${item.packages.join(" ")}`;

export const hasCommand = (command: string): boolean =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(`${folder}/${command}`));

function isDebianFamily(): boolean {
  if (!existsSync("/etc/os-release")) return false;
  return /^ID(_LIKE)?=.*debian/m.test(readFileSync("/etc/os-release", "utf8"));
}

/** Installs what is missing where that is allowed; a failed install is said and leaves the suites to skip. */
export async function installSystemPackages(options: {
  readonly asked: boolean;
  readonly say: (line: string) => void;
}): Promise<void> {
  const missing = systemPackages.filter((item) => !hasCommand(item.command));
  if (missing.length === 0) return;
  const isRoot = process.getuid?.() === 0;
  if (!isDebianFamily() || !(isRoot || options.asked)) {
    for (const item of missing)
      options.say(`${item.name} is missing: ${howToInstall(item)} (suites that need it are skipped)`);
    return;
  }
  const names = missing.flatMap((item) => item.packages);
  const sudo = isRoot ? [] : ["sudo"];
  options.say(`installing ${names.join(", ")} with apt-get`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...names],
  ]) {
    const [command, ...rest] = [...sudo, ...args];
    if (command === undefined) continue;
    const result = spawnSync(command, rest, { env, stdio: ["ignore", "ignore", "inherit"] });
    if (result.status !== 0) {
      options.say(`${args.join(" ")} failed (exit ${result.status})`);
      return;
    }
  }
}
