/** The secret between the control plane and the GPU workers of one run: whoever has one run's can do nothing to another's. */
import { createHmac } from "node:crypto";

/** @param secret of this deployment, at least 32 characters @returns starts with `tml-`, as official clients of the protocol ask for */
export const runKey = (secret: string, runId: string): string =>
  `tml-${createHmac("sha256", secret).update(`rolldeck fleet ${runId}`).digest("base64url")}`;
