/** `npm run bench -- <name> [flags]`: makes the clone usable, then runs one benchmark (e2e/runner/run-bench.ts). */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { ensureInstalled, root } from "../apps/cli/bin/ensure-installed.mjs";

ensureInstalled();
const result = spawnSync(
  process.execPath,
  ["--import", "tsx", path.join(root, "e2e/runner/run-bench.ts"), ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit", env: { ...process.env, ROLLDECK_ROOT: root } },
);
process.exit(result.status ?? 1);
