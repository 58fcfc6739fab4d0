/**
 * What a backend can and can't do, as data: the form shows it, launch refuses by it. A setting that a backend can't honour is
 * never silently ignored.
 */
import type { InputIssue } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { EndpointKind } from "./openai/endpoint.ts";
import type { TinkerDialectName } from "./tinker/dialects.ts";

export interface SettingLimit {
  /** Of the field in a run config: `algorithm.dualClip`. */
  readonly path: string;
  /** For people: what is missing, and what to do instead. */
  readonly reason: string;
  readonly refuses: (config: RunConfig) => boolean;
}
export type BackendWire =
  /** `by-config`: `backend.dialect` says it. */
  | { readonly kind: "tinker"; readonly dialect: TinkerDialectName | "by-config" }
  | {
      readonly kind: "sampling";
      readonly endpoint: Exclude<EndpointKind, "gpu-worker" | "tinker">;
      /** The server's engines are those of a trainer that is launched with the run: `backend.server` names it. */
      readonly launched?: true;
    };
export interface Backend {
  readonly description: string;
  /** How its server is spoken to. */
  readonly wire: BackendWire;
  /** None: it samples only. */
  readonly losses: readonly string[];
  readonly limits: readonly SettingLimit[];
  /** Its server tells what its engine bears, so that `dispatcher.adaptive` has something to go by. */
  readonly load: boolean;
  /** Updates and sampling have devices of their own. Where not, what samples during an update takes its time from the update. */
  readonly overlap: boolean;
}

/** Why this config can't run on this backend; empty = it can. */
export function refusedSettings(backend: Backend, config: RunConfig): InputIssue[] {
  const refused = backend.limits
    .filter((limit) => limit.refuses(config))
    .map(({ path, reason }) => ({ path, message: reason }));
  if (config.backend.server !== null && config.backend.endpoint !== null) {
    refused.push({
      path: "backend.server",
      message: "a backend has a name in the operator's list or an address, not both",
    });
  }
  refused.push(...fleetIssues(config));
  // A backend without any loss refuses to train as such; an outside trainer brings its own.
  const trainsHere = config.kind === "train" && config.stepSource === "planned" && backend.losses.length > 0;
  if (trainsHere && !backend.losses.includes(config.algorithm.loss)) {
    const fix = `one of ${backend.losses.join(", ")}`;
    refused.push({
      path: "algorithm.loss",
      message: `this backend has no loss ${config.algorithm.loss}: choose ${fix}`,
    });
  }
  return refused;
}

/** The fleet has workers of one kind, and a run has either some of its own or a server that is there already. */
function fleetIssues({ backend: { name, fleet, endpoint, server } }: RunConfig): InputIssue[] {
  if (fleet === null) return [];
  const issue = (message: string, fix: string): InputIssue[] => [{ path: "backend.fleet", message, fix }];
  if (name !== "gpu-worker")
    return issue(
      `the fleet's workers are Rolldeck's own, not ${name}`,
      "set it to null, or backend.name to gpu-worker",
    );
  if (endpoint === null && server === null) return [];
  const other = endpoint === null ? "backend.server" : "backend.endpoint";
  return issue(`a run has workers of the fleet or ${other}, not both`, `set ${other} or backend.fleet to null`);
}
