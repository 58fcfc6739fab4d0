import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { exportModel } from "../../real/exported-model.ts";
import { gpuWorkerKeyOf, startRealStack } from "../../real/real-stack.ts";
import { measureRun } from "../../stack/measured-run.ts";

export interface WarmStart {
  readonly seed: number;
  readonly steps: number;
  readonly limitMs: number;
  readonly progress: (line: string) => void;
}

/** A warm start of the quickstart policy as a folder that any server of Hugging Face models can load. @param model its last part is `quickstart` */
export async function makeWarmFolder(model: string, { seed, steps, limitMs, progress }: WarmStart): Promise<void> {
  const stack = await startRealStack({});
  try {
    const config: RunConfigInput = {
      ...presets.quickstart.config,
      kind: "evaluate",
      name: `warm start ${seed}`,
      seed,
      model: { name: "quickstart", warmStart: { ...presets.quickstart.config.model.warmStart, steps } },
      evaluation: { samples: 8 },
    };
    const { runId } = await measureRun(stack.rolldeck, config, { label: `warm start ${seed}`, limitMs, progress });
    const checkpoint = String(
      await stack.value("select path from checkpoints where run_id = $1 and version = 0", [runId]),
    );
    const url = String(await stack.value("select url from gpu_workers where url is not null"));
    mkdirSync(model, { recursive: true });
    await exportModel({ url, apiKey: gpuWorkerKeyOf(stack.dataFolder) }, checkpoint, model);
    rmSync(path.join(model, "export.tar"));
  } finally {
    await stack.stop();
  }
}
