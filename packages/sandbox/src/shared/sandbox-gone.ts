import { BoundaryError } from "@rolldeck/contracts/errors";

/** It ended, or is another deployment's. */
export const sandboxGone = (id: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "gone", `sandbox ${id} is not there any more`, { cause });
