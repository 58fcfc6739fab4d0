/** Sandboxes: where they stand, and how long one stays. Rows are written here; the workers' sweep does what they say. */
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import { ConflictError } from "@rolldeck/contracts/errors";
import { keepSandbox, letKeptSandboxGo } from "@rolldeck/db/hot/sandboxes";
import { readRolloutSandboxes, readRunSandboxes, readSandbox } from "@rolldeck/db/reads/read-sandboxes";
import { noteOnRun } from "@rolldeck/db/runs/note-on-run";
import type { Pool } from "pg";
import type { SandboxServices } from "../services.ts";

export function createSandboxServices(pool: Pool): SandboxServices {
  const told = async (sandboxId: string, words: (sandbox: SandboxInfo) => string): Promise<SandboxInfo> => {
    const sandbox = await readSandbox(pool, sandboxId);
    await noteOnRun(pool, sandbox.runId, [{ level: "info", message: words(sandbox) }]);
    return sandbox;
  };
  return {
    ofRollout: ({ rolloutId }) => readRolloutSandboxes(pool, rolloutId),
    ofRun: (input) => readRunSandboxes(pool, input),
    async keep({ sandboxId, minutes }, by) {
      if (!(await keepSandbox(pool, sandboxId, minutes))) throw await refusal(pool, sandboxId, "kept");
      return told(
        sandboxId,
        ({ rolloutId }) => `${by} keeps sandbox ${sandboxId} of rollout ${rolloutId} for ${minutes} min`,
      );
    },
    async close({ sandboxId }, by) {
      if (!(await letKeptSandboxGo(pool, sandboxId))) throw await refusal(pool, sandboxId, "closed by hand");
      return told(sandboxId, ({ rolloutId }) => `${by} lets kept sandbox ${sandboxId} of rollout ${rolloutId} go`);
    },
  };
}

/** @throws NotFoundError */
async function refusal(pool: Pool, sandboxId: string, wanted: string): Promise<ConflictError> {
  const { state } = await readSandbox(pool, sandboxId);
  return new ConflictError(
    state === "open"
      ? `The sandbox is in use by its rollout: it can't be ${wanted}. It closes when the rollout is done with it, or its run is stopped.`
      : state === "opening"
        ? `The sandbox is still being opened: it can't be ${wanted} yet.`
        : `The sandbox is ${state}: it can't be ${wanted} any more.`,
  );
}
