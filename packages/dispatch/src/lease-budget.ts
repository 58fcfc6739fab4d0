/**
 * What one plan may still lease. Invariants: it never spends past the run's grants; a part of the granted sandboxes is left for
 * grading as soon as there are two, because an agent's sandbox frees itself only when its rollout moves on.
 */
import type { NewLease, Resource, ResourceCounts } from "@rolldeck/contracts/plan";
import type { Bounds } from "@rolldeck/contracts/run-config";
import type { PoolCause, WaitReason } from "./wait-reason.ts";

const causeOf: Readonly<Record<Resource, PoolCause>> = {
  sandbox: "sandbox",
  initSlot: "init-slot",
  runSlot: "run-slot",
  gradeSlot: "grade-slot",
  gpu: "gpu",
};

export class LeaseBudget {
  readonly #grants: ResourceCounts;
  readonly #held: Record<Resource, number>;
  readonly #forAgents: number;
  #agentSandboxes: number;

  /** @param agentSandboxes how many of the held sandboxes serve an agent, not grading */
  constructor(grants: ResourceCounts, held: ResourceCounts, bounds: Bounds, agentSandboxes: number) {
    this.#grants = grants;
    this.#held = { ...held };
    this.#forAgents = Math.max(1, grants.sandbox - gradingReserve(grants.sandbox, bounds));
    this.#agentSandboxes = agentSandboxes;
  }

  /** Takes all of the leases or none. @returns null when it did, else what is missing */
  take(leases: readonly NewLease[]): WaitReason | null {
    for (const lease of leases) {
      const missing = this.#missing(lease);
      if (missing !== null) return missing;
    }
    for (const lease of leases) {
      this.#held[lease.resource] += 1;
      if (isForAgentOnly(lease)) this.#agentSandboxes += 1;
    }
    return null;
  }

  #missing(lease: NewLease): WaitReason | null {
    const { resource } = lease;
    const grant = this.#grants[resource];
    if (this.#held[resource] >= grant) {
      if (grant === 0) return { waitsFor: "grant", resource, detail: `no ${resource} is granted to this run` };
      return { waitsFor: causeOf[resource], resource, detail: `all ${grant} granted leases of ${resource} are in use` };
    }
    if (!isForAgentOnly(lease) || this.#agentSandboxes < this.#forAgents) return null;
    return {
      waitsFor: "sandbox",
      resource,
      detail: `agents hold ${this.#agentSandboxes} sandboxes; the rest is kept for grading`,
    };
  }
}

/** Of what grading could use of a grant by its share of the bounds, this part is kept free for it. */
const reservedPart = 1 / 8;

/**
 * Sandboxes of a grant that agents leave to grading. Little is enough: a rollout that comes to be graded has just freed its agent's
 * sandbox, and whatever is freed goes to grading first. It is more than one for gradings that come back after a failure, or after
 * other runs took what was freed. To keep all of grading's share free made a step 5 to 8 % longer where the pool is short.
 */
export function gradingReserve(grant: number, { init, run, evaluate }: Bounds): number {
  const share = (grant * evaluate) / (init + run + evaluate);
  return grant < 2 ? 0 : Math.max(1, Math.min(evaluate, Math.floor(share * reservedPart)));
}

/** A sandbox kept until 'evaluate' turns into the grading one itself. */
const isForAgentOnly = ({ resource, until }: NewLease): boolean => resource === "sandbox" && until !== "evaluate";
