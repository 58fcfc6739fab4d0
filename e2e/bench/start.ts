/**
 * From a fresh clone: seconds until the link is printed with nothing installed (`urlS`), until the first optimizer update of the
 * quickstart run (`firstStepS`), and until the link on a second start with everything there (`installedUrlS`).
 */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startStack } from "../stack/started-stack.ts";

export async function run(_args: string[], progress: (line: string) => void): Promise<object> {
  const root = path.resolve(import.meta.dirname, "../..");
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-clone-"));
  chmodSync(folder, 0o711);
  const clone = path.join(folder, "rolldeck");
  const dataFolder = path.join(folder, "data");
  spawnSync("mkdir", ["-p", dataFolder]);
  const cloned = spawnSync("git", ["clone", "--quiet", root, clone], { stdio: ["ignore", 2, 2] });
  if (cloned.status !== 0) throw new Error("git clone failed");
  // Nothing prepared earlier may help: no interpreter that has torch already.
  const env = { ROLLDECK_PYTHON: "" };
  try {
    const startedAt = Date.now();
    const first = await startStack({ root: clone, dataFolder, env, onLine: progress, limitMs: 300_000 });
    let firstStepS: number | null = null;
    try {
      firstStepS = await secondsToFirstStep(first, startedAt);
    } finally {
      await first.stop();
    }
    const second = await startStack({ root: clone, dataFolder, env, onLine: progress });
    await second.stop();
    return { urlS: first.urlS, firstStepS, installedUrlS: second.urlS };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function secondsToFirstStep(stack: Awaited<ReturnType<typeof startStack>>, startedAt: number): Promise<number> {
  const endsAt = Date.now() + 15 * 60_000;
  while (Date.now() < endsAt) {
    const page = await stack.rolldeck.listRuns({});
    if ((page.items[0]?.step ?? 0) >= 1) return (Date.now() - startedAt) / 1000;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error("no optimizer update within 15 minutes");
}
