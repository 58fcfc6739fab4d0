/** What failed on a host, with a reason for people. `retryable`: the host may do it later. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { FleetReason } from "@rolldeck/contracts/fleet";

export class LaunchFailure extends BoundaryError {
  override readonly name = "LaunchFailure";
  constructor(
    readonly reason: FleetReason,
    options: { readonly cause?: unknown; readonly retryable?: boolean } = {},
  ) {
    super("infrastructure", reason.code, reason.message, options);
  }
}
