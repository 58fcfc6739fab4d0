/**
 * A base image made here, since none can be pulled: Debian by debootstrap, the running Node and npm, and the machine's
 * certificates.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  const result = spawnSync(command, args, { env, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  if (result.status !== 0)
    throw new Error(
      `${command} ${args.slice(0, 3).join(" ")} failed: ${result.error?.message ?? result.stderr.slice(-2000)}`,
    );
  return result.stdout;
}

/** Makes `tag` from an empty folder; about two minutes. */
export function makeBaseImage(options: {
  readonly folder: string;
  readonly tag: string;
  readonly env: NodeJS.ProcessEnv;
}): void {
  const { folder, tag, env } = options;
  run("debootstrap", ["--variant=minbase", "--include=ca-certificates,python3,python3-venv", "bookworm", folder]);
  mkdirSync(path.join(folder, "usr/local/lib/node_modules"), { recursive: true });
  cpSync(process.execPath, path.join(folder, "usr/local/bin/node"));
  const npm = path.join(run("npm", ["root", "-g"]).trim(), "npm");
  cpSync(npm, path.join(folder, "usr/local/lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", path.join(folder, "usr/local/bin/npm"));
  const certificates = "etc/ssl/certs/ca-certificates.crt";
  if (existsSync(`/${certificates}`)) cpSync(`/${certificates}`, path.join(folder, certificates));
  const importing = `tar -C '${folder}' -c . | docker import --change 'ENV NODE_EXTRA_CA_CERTS=/${certificates}' - ${tag}`;
  run("bash", ["-o", "pipefail", "-c", importing], env);
}
