import { dialects } from "@rolldeck/agent/core/registry";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Dialect } from "@rolldeck/contracts/ports/dialect";

/** @throws BoundaryError("infrastructure") for a name this server does not have: launch checks it, a later server may differ */
export function dialectNamed(name: string): Dialect {
  const known: Readonly<Record<string, Dialect>> = dialects;
  const dialect = Object.hasOwn(known, name) ? known[name] : undefined;
  if (dialect === undefined) {
    throw new BoundaryError("infrastructure", "unknown_dialect", `this server has no dialect named ${name}`);
  }
  return dialect;
}
