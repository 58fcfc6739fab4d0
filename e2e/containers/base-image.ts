/**
 * A base image made here, since none can be pulled: Debian by debootstrap, the running Node and npm, the machine's certificates,
 * and the packages of the Python environment that the tests use.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";

const python = "3.11";

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
  readonly sitePackages: string;
}): void {
  const { folder, tag, env, sitePackages } = options;
  run("debootstrap", ["--variant=minbase", "--include=ca-certificates,python3,python3-venv", "bookworm", folder]);
  mkdirSync(path.join(folder, "usr/local/lib/node_modules"), { recursive: true });
  cpSync(process.execPath, path.join(folder, "usr/local/bin/node"));
  const npm = path.join(run("npm", ["root", "-g"]).trim(), "npm");
  cpSync(npm, path.join(folder, "usr/local/lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", path.join(folder, "usr/local/bin/npm"));
  const certificates = "etc/ssl/certs/ca-certificates.crt";
  if (existsSync(`/${certificates}`)) cpSync(`/${certificates}`, path.join(folder, certificates));
  const target = path.join(folder, `usr/local/lib/python${python}/dist-packages`);
  mkdirSync(path.dirname(target), { recursive: true });
  cpSync(sitePackages, target, { recursive: true });
  const importing = `tar -C '${folder}' -c . | docker import --change 'ENV NODE_EXTRA_CA_CERTS=/${certificates}' - ${tag}`;
  run("bash", ["-o", "pipefail", "-c", importing], env);
}

/** The site-packages of the interpreter that the tests use; undefined when its version is not the base image's. */
export function sitePackagesOf(interpreter: string): string | undefined {
  const code =
    "import sysconfig, sys; print(f'{sys.version_info[0]}.{sys.version_info[1]}', sysconfig.get_paths()['purelib'])";
  const [version, folder] = run(interpreter, ["-c", code]).trim().split(" ");
  return version === python ? folder : undefined;
}
