/** The pages' production build, cached by a hash of everything that goes into it. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const inputs = [
  "apps/web",
  "packages/contracts/src",
  "packages/client/src",
  "packages/realtime/src/client",
  "package-lock.json",
];
const ignored = new Set([".next", "node_modules", "dist", ".turbo", "next-env.d.ts"]);

function* filesUnder(at: string): Generator<string> {
  for (const entry of readdirSync(at, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (ignored.has(entry.name)) continue;
    const full = path.join(at, entry.name);
    if (entry.isDirectory()) yield* filesUnder(full);
    else if (!entry.name.includes(".test.")) yield full;
  }
}

/** Hex sha256 over paths and contents of the build's inputs. */
export function hashWebInputs(root: string): string {
  const hash = createHash("sha256").update(process.version);
  for (const input of inputs) {
    const full = path.join(root, input);
    const files = input.endsWith(".json") ? [full] : filesUnder(full);
    for (const file of files)
      hash.update(path.relative(root, file)).update("\0").update(readFileSync(file)).update("\0");
  }
  return hash.digest("hex");
}

/**
 * Builds unless the last build had the same inputs.
 * @returns whether it built, and how long it took in milliseconds.
 * @throws Error with the end of the build's output.
 */
export async function ensureWebBuilt(
  root: string,
  onLine: (line: string) => void,
): Promise<{ built: boolean; tookMs: number }> {
  const web = path.join(root, "apps/web");
  const mark = path.join(web, ".next/rolldeck-inputs");
  const hash = hashWebInputs(root);
  if (existsSync(mark) && readFileSync(mark, "utf8") === hash) return { built: false, tookMs: 0 };
  const startedAt = Date.now();
  const output: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(process.execPath, [path.join(root, "node_modules/next/dist/bin/next"), "build"], {
      cwd: web,
      env: { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output.push(text);
        onLine(text.trim());
      });
    }
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`building the pages failed (exit ${code}):\n${output.join("").slice(-4000)}`);
  writeFileSync(mark, hash);
  return { built: true, tookMs: Date.now() - startedAt };
}
