/** The scripted GPU worker as one script, for an image without anything beside Node. */
import path from "node:path";
import type { TestHost } from "@rolldeck/fleet/testing/docker-hosts";
import { makeScriptImage } from "@rolldeck/fleet/testing/worker-image";
import { build } from "esbuild";

const root = path.resolve(import.meta.dirname, "../../..");

/** @returns the image's name, the same on every daemon */
export async function makeScriptedImages(hosts: readonly TestHost[]): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(root, "packages/backends/testing/scripted-worker-process.ts")],
    ...{ bundle: true, write: false, platform: "node", format: "esm", target: "node20" },
  });
  const script = outputFiles[0]?.text;
  if (script === undefined) throw new Error("the scripted worker was not bundled");
  const names = await Promise.all(hosts.map(({ docker }) => makeScriptImage(docker, script)));
  return names[0] ?? "";
}
