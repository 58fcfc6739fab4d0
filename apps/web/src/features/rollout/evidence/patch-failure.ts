import { maxPatchBytes } from "@rolldeck/contracts/patch-state";
import type { TestReport } from "@rolldeck/contracts/test-report";
import { formatBytes } from "../../../format/numbers.ts";

/** Why a patch is not in, without what git said: a patch that is too large was never tried. */
export const patchFailure = ({ bytes }: NonNullable<TestReport["patch"]>): string =>
  bytes > maxPatchBytes
    ? `${formatBytes(bytes)}, larger than what is graded (${formatBytes(maxPatchBytes)}): it was not tried`
    : `${formatBytes(bytes)}, could not be applied`;
