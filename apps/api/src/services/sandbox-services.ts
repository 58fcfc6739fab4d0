/** Sandboxes: where they stand, and how long one stays. Rows are written here, with who asked; the workers' sweep does what they say. */
import { ConflictError } from "@rolldeck/contracts/errors";
import { keepSandbox, letKeptSandboxGo, noRoomWords } from "@rolldeck/db/hot/kept-sandboxes";
import { readRolloutSandboxes, readRunSandboxes, readSandbox } from "@rolldeck/db/reads/read-sandboxes";
import type { Pool } from "pg";
import type { SandboxServices } from "../services.ts";

export function createSandboxServices(pool: Pool): SandboxServices {
  return {
    ofRollout: ({ rolloutId }) => readRolloutSandboxes(pool, rolloutId),
    ofRun: (input) => readRunSandboxes(pool, input),
    async keep({ sandboxId, minutes }, by) {
      const keeping = await keepSandbox(pool, sandboxId, minutes, by);
      if (keeping.is === "not-there") throw await refusal(pool, sandboxId, "kept");
      if (keeping.is === "no-room")
        throw new ConflictError(`The sandbox can't be kept: ${noRoomWords(keeping)}. Let one of them go first.`);
      return readSandbox(pool, sandboxId);
    },
    async close({ sandboxId }, by) {
      if (!(await letKeptSandboxGo(pool, sandboxId, by))) throw await refusal(pool, sandboxId, "closed by hand");
      return readSandbox(pool, sandboxId);
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
