/**
 * Bundles the server apps with esbuild: our TypeScript becomes one file per app, npm packages stay external (a bundled pg or
 * BullMQ fails at run time). Takes well under a second, so every start does it. Invariant: a bundle is replaced as a whole, and only
 * when it differs; commands and servers that run at the same time never read half of one.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { root } from "./ensure-installed.mjs";

const keepPackagesExternal = {
  name: "keep-packages-external",
  setup(api) {
    api.onResolve({ filter: /^[^./]/ }, (args) => {
      if (args.kind === "entry-point" || args.path.startsWith("@rolldeck/")) return undefined;
      return { path: args.path, external: true };
    });
  },
};

/** Main module of the threads in which the worker indexes code: beside the worker's own bundle. */
const indexThread = {
  in: path.join(root, "packages/tools/src/code-search/index-thread.ts"),
  out: "worker/dist/index-thread",
};

/** Main module of the threads in which the API simulates. */
const simulationThread = {
  in: path.join(root, "apps/api/src/simulation/simulation-thread.ts"),
  out: "api/dist/simulation-thread",
};

/** @param {string[]} apps folder names under apps/ that have a src/main.ts */
export async function buildServers(apps) {
  const entryPoints = apps
    .map((app) => ({ in: path.join(root, "apps", app, "src/main.ts"), out: path.join(app, "dist/main") }))
    .filter((entry) => existsSync(entry.in));
  if (apps.includes("worker")) entryPoints.push(indexThread);
  if (apps.includes("api")) entryPoints.push(simulationThread);
  const { outputFiles } = await build({
    entryPoints,
    write: false,
    outdir: path.join(root, "apps"),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    sourcemap: true,
    logLevel: "error",
    plugins: [keepPackagesExternal],
  });
  for (const { path: file, contents } of outputFiles) replaceWhole(file, contents);
}

function replaceWhole(file, contents) {
  if (existsSync(file) && readFileSync(file).equals(contents)) return;
  mkdirSync(path.dirname(file), { recursive: true });
  const part = `${file}.${process.pid}`;
  writeFileSync(part, contents);
  renameSync(part, file);
}
