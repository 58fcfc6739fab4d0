/**
 * Who may start a stage now: the dispatcher's bounds, then the run's grants. Later stages come first, so that what is nearly
 * done gets done and gives its leases back. Invariant: a rollout that waits and is not admitted has a reason, found on the way.
 */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { Action, NewLease, ResourceCounts, RolloutSnapshot } from "@rolldeck/contracts/plan";
import type { Dispatcher } from "./dispatcher.ts";
import type { Facts } from "./facts.ts";
import { LeaseBudget } from "./lease-budget.ts";
import { isInFlight } from "./rollout-state.ts";
import { StartRate } from "./start-rate.ts";
import type { WaitReason } from "./wait-reason.ts";
import { waitingLine } from "./waiting-line.ts";

type Admit = Extract<Action, { do: "admit" }>;
export interface Admissions {
  readonly actions: readonly Admit[];
  /** Why each rollout that waits on was not admitted, by id. */
  readonly waits: ReadonlyMap<string, WaitReason>;
  /** When the start rate lets the next one in that only it holds back, milliseconds; null = it holds nobody. */
  readonly nextStartAt: number | null;
  /** Run slots that are left when all that could start has. */
  readonly idleRunSlots: number;
}

const drainOrder: readonly Stage[] = ["evaluate", "run", "init"];

/** @param touched rollouts that another action of this plan moves */
export function admissions(
  facts: Facts,
  dispatcher: Dispatcher,
  grants: ResourceCounts,
  touched: ReadonlySet<string>,
): Admissions {
  const { ready, waits } = waitingLine(facts, dispatcher, touched);
  const door = new Door(facts, dispatcher, grants);
  const actions: Admit[] = [];
  for (const rollout of drainOrder.flatMap((stage) => ready[stage])) {
    const admitted = door.admit(rollout);
    if ("do" in admitted) actions.push(admitted);
    else waits.set(rollout.rolloutId, admitted);
  }
  return { actions, waits, nextStartAt: door.nextStartAt, idleRunSlots: door.idleRunSlots };
}

/** Lets one after the other in, and keeps count. */
class Door {
  readonly #facts: Facts;
  readonly #dispatcher: Dispatcher;
  readonly #load: ReturnType<typeof loadOf>;
  readonly #budget: LeaseBudget;
  readonly #rate: StartRate;
  nextStartAt: number | null = null;

  constructor(facts: Facts, dispatcher: Dispatcher, grants: ResourceCounts) {
    this.#facts = facts;
    this.#dispatcher = dispatcher;
    this.#load = loadOf(facts);
    this.#budget = new LeaseBudget(grants, facts.snapshot.held, facts.bounds, this.#load.agentSandboxes);
    this.#rate = new StartRate(facts.snapshot);
  }

  admit(rollout: RolloutSnapshot): Admit | WaitReason {
    const { stage, rolloutId, attempt } = rollout;
    const barred = this.#dispatcher.bar(stage, this.#load, this.#facts.bounds);
    if (barred !== null) return barred;
    if (stage === "init" && !this.#rate.mayStart) return this.#tooSoon();
    const leases = leasesOf(this.#facts, this.#dispatcher, rollout);
    const missing = this.#budget.take(leases);
    if (missing !== null) return missing;
    if (stage === "init") this.#rate.take();
    this.#count(rollout);
    return { do: "admit", rolloutId, attempt, stage, leases };
  }

  /** Rollouts before run are counted as what will take a slot. */
  get idleRunSlots(): number {
    const { inFlight, waiting } = this.#load;
    return this.#facts.bounds.run - inFlight.run - inFlight.init - waiting.run - waiting.init;
  }

  #tooSoon(): WaitReason {
    this.nextStartAt = this.#rate.nextAt;
    const rate = this.#facts.snapshot.config.dispatcher.startsPerSecond;
    return { waitsFor: "start-rate", detail: `${rate} rollouts may start per second`, until: this.nextStartAt };
  }

  #count(rollout: RolloutSnapshot): void {
    const { stage, taskSet } = rollout;
    this.#load.waiting[stage] -= 1;
    this.#load.inFlight[stage] += 1;
    if (stage !== "init") return;
    this.#load.environments += 1;
    const { needsSandbox, inPlace } = sandboxOf(this.#facts, taskSet);
    if (needsSandbox && !inPlace) this.#load.agentSandboxes += 1;
  }
}

const sandboxOf = ({ snapshot }: Facts, taskSet: number) => ({
  needsSandbox: snapshot.taskSandboxes[taskSet] !== "none",
  inPlace: snapshot.gradedInPlace?.[taskSet] ?? false,
});

/**
 * A sandbox that is graded in place stands for the agent's and the grading one: its lease goes on through both. What the rollout
 * holds already is not taken twice.
 */
function leasesOf(facts: Facts, dispatcher: Dispatcher, { stage, taskSet, holds }: RolloutSnapshot): NewLease[] {
  const { needsSandbox, inPlace } = sandboxOf(facts, taskSet);
  return dispatcher
    .leases(stage, needsSandbox)
    .filter(({ resource }) => !holds.includes(resource))
    .map((lease) => (inPlace && lease.resource === "sandbox" ? { ...lease, until: "evaluate" } : lease));
}

function loadOf(facts: Facts) {
  const load = {
    waiting: { init: 0, run: 0, evaluate: 0 },
    inFlight: { init: 0, run: 0, evaluate: 0 },
    agentSandboxes: 0,
    environments: 0,
  };
  for (const rollout of facts.unsettled) {
    const { stage, holds } = rollout;
    const { inPlace } = sandboxOf(facts, rollout.taskSet);
    if (isInFlight(rollout)) load.inFlight[stage] += 1;
    else load.waiting[stage] += 1;
    if (stage !== "evaluate" && !inPlace && holds.includes("sandbox")) load.agentSandboxes += 1;
    const started = stage === "run" || (stage === "init" && isInFlight(rollout));
    if (started || (inPlace && stage === "evaluate" && holds.includes("sandbox"))) load.environments += 1;
  }
  return load;
}
