/**
 * A checkpoint as one tar, of a Hugging Face folder or a PEFT adapter: a model card and its facts first, then what the GPU worker
 * gives, passed on as it comes. Invariants: nothing is kept here; a tar that does not come whole lacks its end, and its connection is cut; one that
 * nobody reads on is given up, so that it does not keep others from theirs.
 */
import { Readable } from "node:stream";
import type { ExportFormat, RelatedRun } from "@rolldeck/contracts/api/checkpoints";
import { BoundaryError, ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readLineage } from "@rolldeck/db/reads/read-checkpoints";
import { iso, readRow } from "@rolldeck/db/reads/rows";
import type { Pool } from "pg";
import { z } from "zod";
import manifest from "../../package.json" with { type: "json" };
import { ProblemError } from "../problems.ts";
import type { CheckpointArchive } from "../services.ts";
import { metricsAt } from "./metrics-at.ts";
import { type CardFacts, exportFacts, modelCard } from "./model-card.ts";
import type { Stored, StoredPlaces } from "./stored-places.ts";
import { tarEntry } from "./tar-entry.ts";

/** Each makes the GPU worker read all of it twice: for its digest, then to send it. */
const mostAtOnce = 2;
const mostAncestors = 20;
/** So long may pass between two reads of an export. */
const idleLimitMs = 120_000;
/** A worker reads all files before it sends the first; so often it is told that somebody waits for that. */
const useEveryMs = 20_000;

type ExportPlaces = Pick<StoredPlaces<Pick<Stored, "export">>, "of">;

const Saved = z.object({ path: z.string(), savedAt: z.string(), name: z.string() });

export class CheckpointExports {
  readonly #pool: Pool;
  readonly #places: ExportPlaces;
  readonly #idleMs: number;
  #open = 0;

  constructor(pool: Pool, places: ExportPlaces, idleMs = idleLimitMs) {
    this.#pool = pool;
    this.#places = places;
    this.#idleMs = idleMs;
  }

  /**
   * @throws NotFoundError; ConflictError where the files are gone or damaged; ProblemError while it can't be done, where a worker of the
   * run's has to be there first, and where it can't ever be done here
   */
  async open(at: {
    readonly id: string;
    readonly runId: string;
    readonly version: number;
    readonly config: RunConfig;
    readonly format: ExportFormat;
  }): Promise<CheckpointArchive> {
    const saved = await readRow(
      this.#pool,
      Saved,
      `select c."path", ${iso('c."created_at"')} as "savedAt", r."name" from "checkpoints" c join "runs" r on r."id" = c."run_id"
       where c."run_id" = $1 and c."version" = $2 and c."state" = 'complete'`,
      [at.runId, at.version],
    );
    if (saved === null) throw new NotFoundError("checkpoint", at.id);
    const { stored, use } = await this.#places.of(at.runId, at.config);
    // Counted in the same breath: nobody else may come in between.
    if (this.#open >= mostAtOnce)
      throw new ProblemError("too-many", `${mostAtOnce} exports are under way: try again when one is done.`);
    this.#open++;
    const using = setInterval(use, useEveryMs).unref();
    try {
      const head = headOf(await this.#facts(at, saved));
      const folder = await stored.export(saved.path, at.format).catch((error: unknown) => {
        throw meaning(error, at.id);
      });
      const idle = setTimeout(() => body.destroy(new Error("nobody reads this export on")), this.#idleMs).unref();
      const body = Readable.from(
        inOrder(head, folder.body, () => idle.refresh()),
        { objectMode: false },
      );
      body.on("error", () => undefined);
      body.once("close", () => {
        clearTimeout(idle);
        clearInterval(using);
        folder.body.destroy();
        this.#open--;
      });
      return {
        fileName: at.format === "hf" ? `${at.id}.tar` : `${at.id}-adapter.tar`,
        bytes: head.length + folder.bytes,
        body,
      };
    } catch (error) {
      clearInterval(using);
      this.#open--;
      throw error;
    }
  }

  async #facts(
    { id, runId, version, config, format }: Parameters<CheckpointExports["open"]>[0],
    { name, savedAt }: z.infer<typeof Saved>,
  ): Promise<CardFacts> {
    const metrics = await metricsAt(this.#pool, runId, version);
    const ancestors = await this.#ancestors(runId);
    return { id, runId, name, version, savedAt, format, config, metrics, ancestors, rolldeck: manifest.version };
  }

  async #ancestors(runId: string): Promise<RelatedRun[]> {
    const found: RelatedRun[] = [];
    for (let at: string | undefined = runId; at !== undefined && found.length < mostAncestors; ) {
      const { parent } = await readLineage(this.#pool, at);
      if (parent !== null) found.push(parent);
      at = parent?.runId;
    }
    return found;
  }
}

const headOf = (facts: CardFacts): Buffer =>
  Buffer.concat([tarEntry("README.md", modelCard(facts)), tarEntry("rolldeck.json", exportFacts(facts))]);

/** @param onPart is called as each part is asked for */
async function* inOrder(head: Buffer, body: Readable, onPart: () => void): AsyncGenerator<Uint8Array, void, void> {
  onPart();
  yield head;
  for await (const part of body) {
    onPart();
    yield part;
  }
}

/** A checkpoint whose files are not what was saved can't be helped by trying again. */
export function meaning(error: unknown, id: string): unknown {
  if (!(error instanceof BoundaryError)) return error;
  if (error.code === "unknown_model")
    return new ConflictError(`The files of checkpoint ${id} are gone from the GPU worker's disk.`, { cause: error });
  if (error.code === "conflict")
    return new ConflictError(`Checkpoint ${id} can't be used: ${error.message}`, { cause: error });
  return new ProblemError("unavailable", "The GPU worker does not give the checkpoint now: try again later.", {
    cause: error,
  });
}
