/** What a GPU worker's answer that is no 200 says. */

import { BoundaryError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { WorkerError } from "@rolldeck/contracts/wire/tinker";

/** @returns BoundaryError model-server, its `code` the worker's own word */
export function refusalOf(status: number, text: string): BoundaryError {
  const parsed = WorkerError.safeParse(jsonOrUndefined(text));
  if (!parsed.success) return new BoundaryError("model-server", "bad_answer", `the GPU worker answered ${status}`);
  return new BoundaryError("model-server", parsed.data.code, parsed.data.detail);
}
