/**
 * What the folder of a placement says: which one it is, by whoever launched it; its processes, where it listens and how it ended, by its
 * keeper. Each file is written whole. Invariant: a process number alone is never trusted, only with the time at which it started.
 */
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";

export const Placement = z.object({
  workerId: z.string(),
  claim: z.int(),
  runId: z.string(),
  devices: z.array(z.string()),
});
export type Placement = z.infer<typeof Placement>;

export const ProcessFact = z.object({ pid: z.int().min(2), start: z.string().min(1) });
export type ProcessFact = z.infer<typeof ProcessFact>;

const Running = z.object({ keeper: ProcessFact, worker: ProcessFact, url: z.string().nullable() });
const Ended = z.object({ exitCode: z.int(), outOfMemory: z.boolean() });

interface PlacementState {
  readonly placement: Placement;
  /** Null before its keeper has started it. */
  readonly running: z.infer<typeof Running> | null;
  /** Null while its keeper runs, or was killed. */
  readonly ended: z.infer<typeof Ended> | null;
}

const placementFile = "placement.json";

export async function makePlacement(folder: string, placement: Placement): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, placementFile);
  await writeFile(`${file}.tmp`, JSON.stringify(placement), { mode: 0o600 });
  await rename(`${file}.tmp`, file);
}

/** Null where there is none, or none that was ever whole. */
export async function readPlacement(folder: string): Promise<PlacementState | null> {
  const placement = await readJson(path.join(folder, placementFile), Placement);
  if (placement === null) return null;
  const running = await readJson(path.join(folder, "running.json"), Running);
  return { placement, running, ended: await readJson(path.join(folder, "ended.json"), Ended) };
}

export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function readJson<T extends z.ZodType>(file: string, schema: T): Promise<z.output<T> | null> {
  try {
    const parsed = schema.safeParse(JSON.parse(await readFile(file, "utf8")));
    return parsed.success ? parsed.data : null;
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return null;
    throw error;
  }
}

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";
