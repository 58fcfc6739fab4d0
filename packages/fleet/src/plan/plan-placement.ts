/**
 * Which GPU worker goes where. Pure: the same fleet gives the same plan, in whatever order its rows come.
 *
 * Invariants: a device is given to one worker, whole, while nobody holds it and no container is on it. All of a run's workers
 * start together or none does, on hosts that share its files. Runs wait in one line: devices that could serve one that waits are not given to those after it, so
 * that each is served once enough of them came free. A run that lost workers and can't work gives way to those before it, so
 * that two never wait for what the other holds; one that can work keeps what it has. Nothing is said twice.
 */
import type { FleetAction, FleetReason, FleetSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import { Devices } from "./devices.ts";
import { endWorkers, maxFailures } from "./end-workers.ts";
import { fitWorkers } from "./fit-workers.ts";
import * as reasons from "./reasons.ts";
import { canWork, type RunWorkers, waitingLine } from "./waiting-line.ts";

export { maxFailures };

/** @returns actions in the order in which they are to be applied; none where nothing is to be done */
export function planPlacement(snapshot: FleetSnapshot): FleetAction[] {
  const endings = endWorkers(snapshot);
  const placing = new Placing(snapshot, new Set(endings.map((action) => action.workerId)));
  return [...endings, ...placing.plan()];
}

class Placing {
  readonly #snapshot: FleetSnapshot;
  readonly #devices: Devices;
  /** In line, without those that end. */
  readonly #line: readonly RunWorkers[];
  readonly #ending: ReadonlySet<string>;
  readonly #yielding = new Set<string>();
  readonly #actions: FleetAction[] = [];

  constructor(snapshot: FleetSnapshot, ending: ReadonlySet<string>) {
    this.#snapshot = snapshot;
    this.#ending = ending;
    this.#devices = new Devices(snapshot);
    this.#line = waitingLine(snapshot).filter((run) => !run.broken);
  }

  plan(): FleetAction[] {
    for (const run of this.#line) if (this.#missing(run).length > 0) this.#serve(run);
    return this.#actions;
  }

  /** What a run lacks; what ends now is lacking from the next plan on, and its place in line is kept till then. */
  #missing(run: RunWorkers): WorkerSnapshot[] {
    return run.members.filter((worker) => worker.state !== "stopping" && !this.#isHeld(run, worker));
  }
  #isHeld(run: RunWorkers, worker: WorkerSnapshot): boolean {
    return run.held.includes(worker) && !this.#ending.has(worker.id);
  }
  #held(run: RunWorkers): WorkerSnapshot[] {
    return run.held.filter((worker) => !this.#ending.has(worker.id));
  }
  /** Where its files are: those that it is to read, or by what it holds; null: nowhere yet, or wherever its workers start. */
  #shareOf(run: RunWorkers): string | null {
    if (run.filesOn !== null) return this.#devices.shareNamed(run.filesOn);
    return this.#devices.shareOf(this.#held(run).map((worker) => worker.host));
  }

  #serve(run: RunWorkers): void {
    const missing = this.#missing(run);
    const waits = this.#whyNotNow(run);
    const placements = waits === null ? fitWorkers(missing, this.#devices.rooms(), this.#shareOf(run)) : null;
    if (placements) {
      for (const { workerId, host, devices } of placements) {
        this.#actions.push({ type: "place", workerId, host, devices });
        this.#devices.take(devices);
      }
      return;
    }
    if (this.#isImpossible(run)) this.#sayImpossible(run);
    else if (this.#fitsOnlyWithoutItsOwn(run)) this.#regroup(run);
    else this.#wait(run, waits);
  }

  /** Null: it may start now, if it fits. */
  #whyNotNow(run: RunWorkers): FleetReason | null {
    const { now } = this.#snapshot;
    if (this.#yielding.has(run.group)) return reasons.releasing;
    if (run.members.some((worker) => worker.state === "stopping")) return reasons.releasing;
    const soon = (worker: WorkerSnapshot): boolean =>
      this.#ending.has(worker.id) || worker.state === "lost" || (worker.notBefore ?? now) > now;
    return this.#missing(run).some(soon) ? reasons.backOff : null;
  }

  /** Not even with the whole fleet to itself. What it has on hosts that drain stays there. */
  #isImpossible(run: RunWorkers): boolean {
    const settled = this.#held(run).filter((worker) => !this.#isOnReadyHost(worker));
    const rest = run.members.filter((worker) => !settled.includes(worker));
    const share =
      run.filesOn === null ? this.#devices.shareOf(settled.map((worker) => worker.host)) : this.#shareOf(run);
    return fitWorkers(rest, this.#devices.roomsOfAll(), share) === null;
  }
  #isOnReadyHost(worker: WorkerSnapshot): boolean {
    return this.#snapshot.hosts.some((host) => host.name === worker.host && host.state === "ready");
  }

  #sayImpossible(run: RunWorkers): void {
    const { hosts } = this.#snapshot;
    const wantsGpu = run.members.some((worker) => worker.device === "gpu");
    const without = hosts.filter((host) => host.gpuRuntime === false);
    if (wantsGpu && hosts.length > 0 && without.length === hosts.length) {
      const refusal = reasons.noGpuRuntime(without);
      for (const { id } of run.queued) this.#actions.push({ type: "refuse", workerId: id, reason: refusal });
      return;
    }
    const { filesOn } = run;
    this.#say(run, (worker) => {
      if (filesOn !== null)
        return reasons.filesAway(
          worker,
          filesOn,
          hosts.find((host) => host.name === filesOn),
        );
      if (hosts.length === 0) return reasons.noHosts(worker);
      const away = hosts.filter((host) => host.state !== "ready");
      const couldBe = away.some((host) => host.state === "unseen" || host.devices.length > 0);
      const withThem = couldBe && this.#devices.wouldFit(run.members, away);
      if (withThem) return reasons.hostsAway(worker, away);
      return this.#devices.wouldFitApart(run.members) ? reasons.apart(worker) : reasons.tooLarge(worker);
    });
  }

  /** The rest of its workers stand where those that it lacks would have to be. */
  #fitsOnlyWithoutItsOwn(run: RunWorkers): boolean {
    const held = this.#held(run);
    if (held.length === 0) return false;
    const rooms = this.#devices.roomsOfAll(held.map((worker) => worker.id));
    return fitWorkers(this.#missing(run), rooms, this.#shareOf(run)) === null;
  }

  #regroup(run: RunWorkers): void {
    const held = this.#held(run);
    // It works on with what it has, and nobody is kept waiting for the rest.
    if (canWork(held)) {
      this.#say(run, reasons.noRoom);
      return;
    }
    for (const worker of held.filter((one) => this.#isOnReadyHost(one)))
      this.#actions.push({ type: "stop", workerId: worker.id, reason: reasons.regroups });
    this.#devices.reserve(this.#missing(run), run.filesOn === null ? null : this.#shareOf(run));
  }

  #wait(run: RunWorkers, known: FleetReason | null): void {
    const missing = this.#missing(run);
    if (known === null) {
      const fitsUnreserved = fitWorkers(missing, this.#devices.rooms({ reserved: true }), this.#shareOf(run)) !== null;
      if (!fitsUnreserved) this.#askOthersToYield(run);
      this.#say(run, fitsUnreserved ? reasons.behind : reasons.noRoom);
    } else this.#say(run, () => known);
    this.#devices.reserve(missing, run.filesOn === null ? null : this.#shareOf(run));
  }

  /** Of those that can't work with what they hold, the last in line first; only where it helps, and no more than it takes. */
  #askOthersToYield(run: RunWorkers): void {
    const place = this.#line.indexOf(run);
    const idle = this.#line.filter((other, at) => {
      if (other === run || this.#yielding.has(other.group)) return false;
      const held = this.#held(other);
      if (held.length === 0 || canWork(held) || this.#missing(other).length === 0) return false;
      return at > place || this.#isImpossible(other);
    });
    const rooms = (givers: readonly RunWorkers[]) =>
      this.#devices.rooms({ of: givers.flatMap((giver) => this.#held(giver).map((worker) => worker.id)) });
    const fits = (givers: readonly RunWorkers[]): boolean =>
      fitWorkers(this.#missing(run), rooms(givers), this.#shareOf(run)) !== null;
    if (!fits(idle)) return;
    let givers = idle;
    for (const spared of idle) {
      const fewer = givers.filter((giver) => giver !== spared);
      if (fits(fewer)) givers = fewer;
    }
    for (const giver of givers) {
      this.#yielding.add(giver.group);
      for (const { id } of this.#held(giver))
        this.#actions.push({ type: "stop", workerId: id, reason: reasons.yields });
    }
  }

  /** Of those in the queue, where it is not said already. */
  #say(run: RunWorkers, reasonOf: (worker: WorkerSnapshot) => FleetReason): void {
    for (const worker of run.queued) {
      const reason = reasonOf(worker);
      const { code, message, remedy } = worker.reason ?? {};
      if (code === reason.code && message === reason.message && remedy === reason.remedy) continue;
      this.#actions.push({ type: "queue", workerId: worker.id, reason });
    }
  }
}
