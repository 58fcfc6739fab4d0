/** Whole rollouts without a model: what the sandboxes alone allow in a minute. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { benchSpec, exec, forever, shellOf, timed } from "./bench-sandboxes.ts";

const commands = 10;

/** Opened, set up, ten shell commands, what it changed collected, closed; graded in a fresh sandbox, which is closed. */
async function rollout(runtime: SandboxRuntime): Promise<void> {
  const spec = benchSpec(true);
  let patch: Uint8Array;
  try {
    const sandbox = await runtime.open(spec, forever);
    await exec(sandbox, [
      "sh",
      "-c",
      "mkdir -p /srv/repo && cd /srv/repo && git init -q && echo one >file && git add file",
    ]);
    const shell = shellOf(sandbox);
    await shell("cd /srv/repo");
    for (let turn = 1; turn < commands; turn += 1) await shell(`echo ${turn} >>file; tail -n 1 file`);
    await exec(sandbox, ["sh", "-c", "cd /srv/repo && git diff >/srv/patch"]);
    patch = await sandbox.readFile("/srv/patch", { maxBytes: 1_000_000 }, forever);
  } finally {
    await runtime.close(spec.id, forever);
  }
  const grading = benchSpec(true);
  try {
    const sandbox = await runtime.open(grading, forever);
    await sandbox.writeFile("/srv/patch", patch, {}, forever);
    await exec(sandbox, ["grep", "-q", "^+9", "/srv/patch"]);
  } finally {
    await runtime.close(grading.id, forever);
  }
}

/** The most that any of these numbers at once gets done. */
export async function measureRollouts(
  runtime: SandboxRuntime,
  atOnce: readonly number[],
  progress: (line: string) => void,
): Promise<number> {
  let best = 0;
  for (const count of atOnce) {
    const total = count * 2;
    let begun = 0;
    const worker = async (): Promise<void> => {
      while (begun < total) {
        begun += 1;
        await rollout(runtime);
      }
    };
    const tookMs = await timed(() => Promise.all(Array.from({ length: count }, worker)));
    const perMin = (total / tookMs) * 60_000;
    progress(`${count} rollouts at once: ${perMin.toFixed(1)} a minute`);
    best = Math.max(best, perMin);
  }
  return best;
}
