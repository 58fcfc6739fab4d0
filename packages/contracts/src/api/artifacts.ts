/** What rollouts left behind besides tokens: outputs in full that the model saw cut. `/api/v1/rollouts/{id}/artifacts`. */
import { z } from "zod";
import { RolloutId } from "./runs.ts";

const Int4 = z.int().max(2_147_483_647);

/** A name is a file name: it stands in addresses and becomes one on the disk of whoever downloads it. */
export const artifactNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/u;
/** Bytes kept of one artifact; of a larger one its head and tail are. */
export const maxArtifactBytes = 4 * 1024 * 1024;

/** Names with a meaning: the inspector shows them in their own way, verifiers read them. */
export const artifactNames = {
  /** What the agent changed: bytes of a git patch. */
  patch: "patch.diff",
  /** A PatchState (contracts/patch-state): what became of collecting it. */
  patchState: "patch-state.json",
  /** All of a patch that is larger than what is graded and shown, where that could be kept. */
  wholePatch: "patch-whole.diff.gz",
  /** A TestReport (contracts/test-report). */
  tests: "tests.json",
  /** What the test command printed. */
  testOutput: "test-output.txt",
  /** What was done in a sandbox: one SandboxLogLine (contracts/sandbox-log) a line. */
  agentLog: "agent-sandbox.jsonl",
  gradeLog: "grade-sandbox.jsonl",
} as const;

/** Bytes of a piece of evidence: it is kept whole or not at all. */
export const maxEvidenceBytes = 16 * 1024 * 1024;

export const ListArtifacts = z.strictObject({
  rolloutId: RolloutId,
  /** Absent: the attempt that counts. */
  attempt: Int4.min(1).optional(),
  /** Only those of later turns. */
  after: Int4.min(-1).default(-1),
});
export const ArtifactInfo = z.object({
  turn: z.int(),
  /** The call in its turn. */
  index: z.int(),
  name: z.string(),
  mediaType: z.string(),
  /** Of the whole, and of what is kept. */
  bytes: z.int(),
  storedBytes: z.int(),
  at: z.string(),
});
export type ArtifactInfo = z.infer<typeof ArtifactInfo>;
export const ArtifactList = z.object({
  rolloutId: z.string(),
  attempt: z.int(),
  /** By turn, call and name; a page ends with a turn. */
  artifacts: z.array(ArtifactInfo),
  more: z.boolean(),
});

/** A number in an address. */
const PathNumber = z
  .string()
  .regex(/^[0-9]{1,9}$/, "must be a whole number")
  .transform(Number);
export const ReadArtifact = z.strictObject({
  rolloutId: RolloutId,
  attempt: Int4.min(1).optional(),
  turn: PathNumber,
  index: PathNumber,
  name: z.string().regex(artifactNamePattern, "is not the name of an artifact"),
});
export const ArtifactContent = z.object({ info: ArtifactInfo, content: z.instanceof(Uint8Array) });
export type ArtifactContent = z.infer<typeof ArtifactContent>;
