/**
 * Keeps what a task collected or its verifier found. Invariants: exact bytes, whole or not at all; written only under the stage's
 * claim, whose number tells gradings of one rollout apart; a database that is away for a moment costs a wait.
 */
import { maxEvidenceBytes } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { NewEvidence } from "@rolldeck/contracts/ports/task";
import { putArtifact } from "@rolldeck/db/artifacts";
import type { Queryable } from "@rolldeck/db/reads/rows";
import type { ArtifactClaim } from "./save-artifact.ts";
import { sleep } from "./wait-for.ts";

const maxTries = 20;

/**
 * @param turn where it stands among the rollout's turns: their number, for what came after all of them
 * @throws FencedError, BoundaryError("infrastructure"), the signal's reason
 */
export async function saveEvidence(
  db: Queryable,
  claim: ArtifactClaim,
  turn: number,
  evidence: NewEvidence,
  signal: AbortSignal,
): Promise<void> {
  const { name, mediaType, content, wholeBytes = content.length } = evidence;
  if (content.length > maxEvidenceBytes) {
    const message = `${name} has ${content.length} bytes; at most ${maxEvidenceBytes} are kept, and never a part`;
    throw new BoundaryError("infrastructure", "evidence_too_large", message);
  }
  const artifact = { ...claim, turn, index: claim.claim, name, mediaType, content, wholeBytes };
  for (let tries = 1; ; tries++) {
    try {
      return await putArtifact(db, artifact);
    } catch (error) {
      if (!(error instanceof BoundaryError && error.retryable) || tries >= maxTries) throw error;
      await sleep(Math.min(100 * 2 ** tries, 2000), signal);
    }
  }
}
