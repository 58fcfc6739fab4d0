/** How each Node server of the stack is started. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Child } from "./child.ts";
import { say } from "./console-lines.ts";

/** A wrong setting is said here: a server that can't start would otherwise be silent behind its log. */
const restarted =
  (name: string) =>
  (code: number | null, signal: string | null, said: string | null): void => {
    const words = signal === null && said !== null ? `: ${said.trim().slice(0, 300)}` : "";
    say(name, `ended (${signal ?? `exit ${code}`})${words}; starting it again, see logs/${name}.log`);
  };

const exitWithParent = (root: string): string =>
  pathToFileURL(path.join(root, "apps/cli/bin/exit-with-parent.mjs")).href;

/** `apps/<name>/dist/main.mjs`, bundled by the launcher. */
export function nodeChild(options: {
  name: "api" | "worker";
  root: string;
  env: Record<string, string>;
  logFolder: string;
  stopping: AbortSignal;
}): Child {
  const { name, root, env, logFolder, stopping } = options;
  return new Child({
    name,
    command: process.execPath,
    args: ["--enable-source-maps", "--import", exitWithParent(root), path.join(root, "apps", name, "dist/main.mjs")],
    cwd: root,
    env,
    channel: true,
    logFolder,
    stopping,
    onRestart: restarted(name),
  });
}

/** Next on a loopback port; the API passes pages to it. */
export function webChild(options: {
  root: string;
  env: Record<string, string>;
  port: number;
  dev: boolean;
  logFolder: string;
  stopping: AbortSignal;
}): Child {
  const next = path.join(options.root, "node_modules/next/dist/bin/next");
  return new Child({
    name: "web",
    command: process.execPath,
    args: [
      "--import",
      exitWithParent(options.root),
      next,
      options.dev ? "dev" : "start",
      "-H",
      "127.0.0.1",
      "-p",
      String(options.port),
    ],
    cwd: path.join(options.root, "apps/web"),
    env: { ...options.env, NODE_ENV: options.dev ? "development" : "production", NEXT_TELEMETRY_DISABLED: "1" },
    channel: true,
    logFolder: options.logFolder,
    stopping: options.stopping,
    onRestart: restarted("web"),
  });
}
