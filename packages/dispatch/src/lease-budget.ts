/**
 * What one plan may still lease. Invariants: it never spends past the run's grants; one sandbox of the grant is left for grading
 * as soon as there are two, because an agent's sandbox frees itself only when its rollout moves on.
 */
import type { NewLease, Resource, ResourceCounts } from "@rolldeck/contracts/plan";

export class LeaseBudget {
  readonly #grants: ResourceCounts;
  readonly #held: Record<Resource, number>;
  #agentSandboxes: number;

  /** @param agentSandboxes how many of the held sandboxes serve an agent, not grading */
  constructor(grants: ResourceCounts, held: ResourceCounts, agentSandboxes: number) {
    this.#grants = grants;
    this.#held = { ...held };
    this.#agentSandboxes = agentSandboxes;
  }

  /** Takes all of the leases or none. @returns whether it did */
  take(leases: readonly NewLease[]): boolean {
    if (!leases.every((lease) => this.#fits(lease))) return false;
    for (const lease of leases) {
      this.#held[lease.resource] += 1;
      if (isForAgentOnly(lease)) this.#agentSandboxes += 1;
    }
    return true;
  }

  #fits(lease: NewLease): boolean {
    const grant = this.#grants[lease.resource];
    if (this.#held[lease.resource] >= grant) return false;
    return !isForAgentOnly(lease) || this.#agentSandboxes < Math.max(1, grant - 1);
  }
}

/** A sandbox kept until 'evaluate' turns into the grading one itself. */
const isForAgentOnly = ({ resource, until }: NewLease): boolean => resource === "sandbox" && until !== "evaluate";
