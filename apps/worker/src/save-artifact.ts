/**
 * Keeps the whole of an output that the model saw cut. Invariants: written only under the stage's claim; of more than 4 MiB
 * the head and the tail are kept, with the true size; a database that is away for a moment costs a wait, not the rollout.
 */
import { cutMiddle, utf8Length } from "@rolldeck/agent/core/cut-text";
import { artifactNamePattern, maxArtifactBytes } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { putArtifact } from "@rolldeck/db/artifacts";
import type { Queryable } from "@rolldeck/db/reads/rows";
import { sleep } from "./wait-for.ts";

export interface ArtifactClaim {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
}
/** A call's output, whole. */
export interface TextOutput {
  readonly turn: number;
  /** The call in its turn. */
  readonly index: number;
  /** For people; what can't stand in an address is replaced. */
  readonly name: string;
  readonly text: string;
}

const maxTries = 20;

/** @throws FencedError when the claim is lost; BoundaryError("infrastructure") when the database stays away; the signal's reason */
export async function saveArtifact(
  db: Queryable,
  claim: ArtifactClaim,
  { turn, index, name, text }: TextOutput,
  signal: AbortSignal,
): Promise<void> {
  const content = Buffer.from(cutMiddle({ head: text, gapBytes: 0, tail: "" }, maxArtifactBytes).text);
  const artifact = {
    ...claim,
    turn,
    index,
    name: safeName(name),
    mediaType: "text/plain",
    content,
    wholeBytes: utf8Length(text),
  };
  for (let tries = 1; ; tries++) {
    try {
      return await putArtifact(db, artifact);
    } catch (error) {
      if (!(error instanceof BoundaryError && error.retryable) || tries >= maxTries) throw error;
      await sleep(Math.min(100 * 2 ** tries, 2000), signal);
    }
  }
}

function safeName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9._-]/gu, "_").slice(0, 100);
  return artifactNamePattern.test(plain) ? plain : `output${plain.replace(/^[._-]+/u, "-").slice(0, 90)}`;
}
