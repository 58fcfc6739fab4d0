/**
 * Images that hold next to nothing, made of this machine's programs: those of a few megabytes that people make of a shell and a
 * handful of tools, and that have no bash. What can be made depends on the machine; dash is on every one that runs these tests.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import Docker from "dockerode";
import { pack } from "tar-stream";

/** What tools ask of an image beside its shell. */
const tools = "cat chmod env grep head id ls mkdir mv rm readlink sleep stat tar tr true wc".split(" ");
const searched = ["/bin", "/usr/bin", "/sbin", "/usr/sbin", ...(process.env.PATH ?? "").split(":")];

export interface SmallImage {
  readonly shell: string;
  readonly name: string;
  make(socket: string): Promise<void>;
}

/** One of dash; and one of busybox where the machine has one that needs no libraries. */
export function smallImages(): readonly SmallImage[] {
  const dash: SmallImage = {
    shell: "dash",
    name: "rolldeck-test-dash:1",
    make: (socket) => made(socket, "dash:1", ofDash()),
  };
  const busybox = found("busybox");
  if (busybox === null || librariesOf(busybox).length > 0) return [dash];
  const name = "rolldeck-test-busybox:1";
  return [dash, { shell: "busybox", name, make: (socket) => made(socket, "busybox:1", ofBusybox(busybox)) }];
}

type Files = ReadonlyMap<string, { readonly bytes: Buffer } | { readonly link: string }>;

function ofDash(): Files {
  const programs = new Map([["sh", "dash"], ...tools.map((tool) => [tool, tool] as const)]);
  const files = new Map<string, { bytes: Buffer }>();
  for (const [name, program] of programs) {
    const path = found(program);
    if (path === null) throw new Error(`this machine has no ${program}`);
    files.set(`bin/${name}`, { bytes: readFileSync(path) });
    for (const library of librariesOf(path))
      files.set(library.slice(1), { bytes: readFileSync(realpathSync(library)) });
  }
  return files;
}

const ofBusybox = (path: string): Files =>
  new Map<string, { bytes: Buffer } | { link: string }>([
    ["bin/busybox", { bytes: readFileSync(path) }],
    ...["sh", ...tools].map((name) => [`bin/${name}`, { link: "busybox" }] as const),
  ]);

const found = (program: string): string | null =>
  searched.map((folder) => join(folder, program)).find((path) => existsSync(path)) ?? null;

/** Paths as the program asks for them. */
function librariesOf(path: string): string[] {
  const lister = found("ldd");
  if (lister === null) throw new Error("this machine has no ldd");
  try {
    return [...execFileSync(lister, [path], { encoding: "utf8", stdio: "pipe" }).matchAll(/(\/\S+) \(0x/g)].map(
      ([, library = ""]) => library,
    );
  } catch {
    // Not a dynamic program.
    return [];
  }
}

async function made(socket: string, tag: string, files: Files): Promise<void> {
  const docker = new Docker({ socketPath: socket });
  const archive = pack();
  const folders = new Set(["tmp", "proc", "dev", "etc", "srv", "root"]);
  for (const name of files.keys()) for (let at = dirname(name); at !== "."; at = dirname(at)) folders.add(at);
  for (const name of [...folders].sort()) archive.entry({ name: `${name}/`, type: "directory", mode: 0o755 });
  for (const [name, file] of files) {
    if ("link" in file) archive.entry({ name, type: "symlink", linkname: file.link });
    else archive.entry({ name, mode: 0o755 }, file.bytes);
  }
  archive.finalize();
  const [repo = "", version] = tag.split(":");
  const answer = await docker.importImage(Readable.from(archive), { repo: `rolldeck-test-${repo}`, tag: version });
  for await (const _progress of answer);
}
