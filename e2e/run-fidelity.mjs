/** `npm run fidelity`: makes the clone usable, then holds our numbers against other packages (e2e/fidelity/fidelity.ts). */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { ensureInstalled, root } from "../apps/cli/bin/ensure-installed.mjs";

ensureInstalled();
const result = spawnSync(
  process.execPath,
  ["--import", "tsx", path.join(root, "e2e/fidelity/fidelity.ts"), ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit", env: process.env },
);
process.exit(result.status ?? 1);
