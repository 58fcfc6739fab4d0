/** Wall-clock times of the same step in so many sandboxes at once. */
import type { Sandbox, SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { median } from "../quantile.ts";
import { benchSpec, exec, forever, rounded, shellOf, timed } from "./bench-sandboxes.ts";

/**
 * Medians over batches, milliseconds from the first sandbox's begin to the last one's end of one step in all of the batch at once:
 * opening them; one plain command (`true`) in each; one call of the agent's bash tool (`true`) in each, whose shell is up; closing.
 */
export interface BatchTimes {
  readonly openMs: number;
  readonly execMs: number;
  readonly shellMs: number;
  readonly closeMs: number;
}

const repeats = 5;

export async function measureBatches(
  runtime: SandboxRuntime,
  image: boolean,
  options: { readonly atOnce: number; readonly batches: number },
): Promise<BatchTimes> {
  const times = { open: [] as number[], exec: [] as number[], shell: [] as number[], close: [] as number[] };
  for (let batch = 0; batch < options.batches; batch += 1) {
    let sandboxes: Sandbox[] = [];
    const specs = Array.from({ length: options.atOnce }, () => benchSpec(image));
    try {
      times.open.push(
        await timed(async () => {
          sandboxes = await Promise.all(specs.map((spec) => runtime.open(spec, forever)));
        }),
      );
      for (let turn = 0; turn < repeats; turn += 1) {
        times.exec.push(await timed(() => Promise.all(sandboxes.map((sandbox) => exec(sandbox, ["true"])))));
      }
      const shells = sandboxes.map(shellOf);
      await Promise.all(shells.map((shell) => shell("true")));
      for (let turn = 0; turn < repeats; turn += 1) {
        times.shell.push(await timed(() => Promise.all(shells.map((shell) => shell("true")))));
      }
    } finally {
      times.close.push(await timed(() => Promise.all(specs.map(({ id }) => runtime.close(id, forever)))));
    }
  }
  return {
    openMs: rounded(median(times.open)),
    execMs: rounded(median(times.exec)),
    shellMs: rounded(median(times.shell)),
    closeMs: rounded(median(times.close)),
  };
}
