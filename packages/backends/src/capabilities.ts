/**
 * What a backend can and can't do, as data: the form shows it, launch refuses by it. A setting that a backend can't honour is
 * never silently ignored.
 */
import type { InputIssue } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { TinkerDialectName } from "./tinker/dialects.ts";

export interface SettingLimit {
  /** Of the field in a run config: `algorithm.dualClip`. */
  readonly path: string;
  /** For people: what is missing, and what to do instead. */
  readonly reason: string;
  readonly refuses: (config: RunConfig) => boolean;
}
export interface Backend {
  readonly description: string;
  /** How its server is spoken to. */
  readonly dialect: TinkerDialectName;
  readonly losses: readonly string[];
  readonly limits: readonly SettingLimit[];
}

/** Why this config can't run on this backend; empty = it can. */
export function refusedSettings(backend: Backend, config: RunConfig): InputIssue[] {
  const refused = backend.limits
    .filter((limit) => limit.refuses(config))
    .map(({ path, reason }) => ({ path, message: reason }));
  if (config.kind === "train" && !backend.losses.includes(config.algorithm.loss)) {
    const fix = `one of ${backend.losses.join(", ")}`;
    refused.push({
      path: "algorithm.loss",
      message: `this backend has no loss ${config.algorithm.loss}: choose ${fix}`,
    });
  }
  return refused;
}
