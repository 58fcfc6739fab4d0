/**
 * What a namespace sandbox sees, as arguments of bubblewrap: the host's programs read-only, a few harmless files of /etc, and
 * memory-backed folders of limited size to write in. Invariants: no folder with anybody's files or secrets (/root, /home, /var,
 * /run, /tmp, most of /etc) is there; everything that can be written has a size limit; no network but its own loopback.
 */
import { lstat, readlink } from "node:fs/promises";
import type { SandboxMount } from "@rolldeck/contracts/ports/sandbox";

export const homeFolder = "/home/agent";
/** Lies in the sandbox; every command passes through it. */
export const enterPath = "/opt/rolldeck/enter";

/** Numbers under which bubblewrap is given what it reads. */
export const viewFiles = { filter: 3, passwd: 4, group: 5, hosts: 6, enter: 7 } as const;

const systemFolders = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const etcEntries = [
  ...["alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "java", "ld.so.cache"],
  ...["ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release"],
  ...["perl", "profile", "bash.bashrc", "protocols", "python3", "python3.11", "python3.12", "python3.13", "services"],
  ...["ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "host.conf", "gai.conf"],
];
const devices = ["null", "zero", "full", "random", "urandom"];

const mebibyte = 1024 * 1024;
/** Parts of the sandbox's memory that each of its folders may take: together less than all of it. */
const shares = { folder: 3 / 8, shared: 1 / 16 };

export interface View {
  readonly uid: number;
  readonly gid: number;
  readonly workdir: string;
  readonly diskMb: number;
  readonly memoryMb: number;
  readonly mounts: readonly SandboxMount[];
}

/** Folders that a working directory can't be laid over. */
const taken = /^\/(?:usr|bin|sbin|lib\w*|etc|proc|dev|sys|opt\/rolldeck)?(?:\/|$)/;

/** Null when it may be the working directory of a sandbox, else why not. */
export function workdirTrouble(workdir: string): string | null {
  if (!/^\/[^\0]{1,1000}$/.test(workdir) || workdir.split("/").includes("..")) return "is no absolute path";
  return taken.test(workdir) && workdir !== "/usr/src" ? "lies in a folder of the system" : null;
}

/** Arguments of `bwrap`, the program included, up to the command. */
export async function viewArguments(view: View): Promise<string[]> {
  const { uid, gid, workdir, diskMb, memoryMb, mounts } = view;
  const sized = (path: string, bytes: number, mode: string) => [
    "--perms",
    mode,
    "--size",
    String(Math.round(bytes)),
    "--tmpfs",
    path,
  ];
  const disk = Math.min(diskMb, memoryMb * shares.folder) * mebibyte;
  const own = workdir === homeFolder || workdir.startsWith("/tmp/") || workdir === "/tmp" ? [] : [workdir];
  const inside = workdir.startsWith("/tmp/") ? ["--dir", workdir] : [];
  return [
    ...["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"],
    ...["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox"],
    ...["--uid", String(uid), "--gid", String(gid), "--seccomp", String(viewFiles.filter), "--info-fd", "9"],
    ...["--ro-bind", "/usr", "/usr", ...(await systemLinks())],
    ...["/etc", "/opt", "/opt/rolldeck", "/home"].flatMap((folder) => ["--perms", "0755", "--dir", folder]),
    ...etcEntries.flatMap((entry) => ["--ro-bind-try", `/etc/${entry}`, `/etc/${entry}`]),
    ...given(viewFiles.passwd, "/etc/passwd", "0444"),
    ...given(viewFiles.group, "/etc/group", "0444"),
    ...given(viewFiles.hosts, "/etc/hosts", "0444"),
    ...given(viewFiles.enter, enterPath, "0111"),
    ...["--proc", "/proc", ...sized("/dev", mebibyte, "0755")],
    ...devices.flatMap((device) => ["--dev-bind", `/dev/${device}`, `/dev/${device}`]),
    ...["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin"],
    ...["--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"],
    ...sized("/dev/shm", memoryMb * shares.shared * mebibyte, "1777"),
    ...sized("/tmp", disk, "1777"),
    ...[homeFolder, ...own].flatMap((folder) => sized(folder, disk, "0755")),
    ...["--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run", "--dir", "/root", ...inside],
    ...mounts.flatMap(({ source, target, readOnly }) => [readOnly ? "--ro-bind" : "--bind", source, target]),
    ...["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", workdir, "--"],
  ];
}

const given = (file: number, path: string, mode: string): string[] => [
  "--perms",
  mode,
  "--ro-bind-data",
  String(file),
  path,
];

/** The folders beside /usr are links into it on a merged system, folders of their own on others. */
async function systemLinks(): Promise<string[]> {
  const found: string[] = [];
  for (const name of systemFolders) {
    const path = `/${name}`;
    const facts = await lstat(path).catch(() => null);
    if (facts?.isSymbolicLink()) found.push("--symlink", await readlink(path), path);
    else if (facts?.isDirectory()) found.push("--ro-bind", path, path);
  }
  return found;
}

/** Small files of /etc that are the sandbox's own. */
export const etcFiles = (uid: number, gid: number) => ({
  passwd: `root:x:0:0:root:/root:/bin/bash\nnobody:x:${uid}:${gid}:agent:${homeFolder}:/bin/bash\n`,
  group: `root:x:0:\nnogroup:x:${gid}:\n`,
  hosts: "127.0.0.1 localhost sandbox\n::1 localhost\n",
});
