/** What must hold of a run of the little world after every plan. */
import { strict as assert } from "node:assert";
import { stages } from "@rolldeck/contracts/lifecycle";
import { gradingReserve } from "../src/lease-budget.ts";
import { heldBy, type RunRow } from "./world-rows.ts";

/** @throws AssertionError */
export function checkRun(run: RunRow, now: number): void {
  checkBounds(run);
  checkStarts(run, now);
  checkGroups(run);
}

function checkBounds(run: RunRow): void {
  const { name, bounds } = run.config.dispatcher;
  if (name === "batch") return;
  const live = run.rollouts.filter(({ state }) => state === "queued" || state === "active");
  for (const stage of stages) {
    const inStage = live.filter((rollout) => rollout.stage === stage).length;
    assert.ok(inStage <= bounds[stage], `${inStage} rollouts in ${stage}, ${bounds[stage]} allowed`);
  }
  // What failed in run waits there too, until a plan tries it again or gives it up.
  const prepared = run.rollouts.filter(({ stage, state, ending }) =>
    stage === "init"
      ? state === "queued" || state === "active"
      : stage === "run" && state === "waiting" && ending === null,
  );
  const isPipeline = name !== "bounded" && name !== "fixed-pool";
  if (isPipeline) assert.ok(prepared.length <= bounds.init, "init runs ahead by no more than its bound");
  const agents = run.rollouts.filter(
    ({ stage, leases }) => stage !== "evaluate" && leases.some(({ resource }) => resource === "sandbox"),
  );
  const most = isPipeline ? bounds.init + bounds.run : bounds.run;
  assert.ok(agents.length <= most, `${agents.length} agents' sandboxes, ${most} allowed`);
  if (name === "bounded") assert.ok(heldBy(run).runSlot <= bounds.run, "more run slots than the bound");
}

/** Agents leave grading its part of a pool that the run has to itself. @throws AssertionError */
export function checkReserve({ config, rollouts }: RunRow, poolSize: number): void {
  const agents = rollouts.filter(
    ({ stage, leases }) =>
      stage !== "evaluate" && leases.some(({ resource, until }) => resource === "sandbox" && until === "run"),
  );
  const most = Math.max(1, poolSize - gradingReserve(poolSize, config.dispatcher.bounds));
  assert.ok(agents.length <= most, `agents hold ${agents.length} of ${poolSize} sandboxes`);
}

function checkStarts({ config, starts, rollouts }: RunRow, now: number): void {
  const rate = config.dispatcher.startsPerSecond;
  if (rate === null) return;
  const windowMs = (1_000 * Math.ceil(rate)) / rate;
  const admitted = rollouts.filter(
    ({ stage, state, stageStartedAt }) => stage === "init" && state === "queued" && stageStartedAt === null,
  );
  const recent = starts.filter((at) => at > now - windowMs).length + admitted.length;
  // One that was admitted in an earlier window may be taken in this one.
  assert.ok(recent <= 2 * Math.ceil(rate), `${recent} starts within ${windowMs} ms`);
}

function checkGroups({ config, groups, steps }: RunRow): void {
  const { name, maxStaleness, overSample } = config.dispatcher;
  const { groupsPerStep } = config.algorithm;
  const ahead = name === "async" && maxStaleness > 0;
  const most = ahead ? (maxStaleness + 1) * groupsPerStep : groupsPerStep + overSample.groups;
  const open = new Set(
    steps
      .filter((step) => step.purpose === "train" && step.source === "planned")
      .filter(({ state }) => state === "gathering" || state === "updating")
      .map(({ stepId }) => stepId),
  );
  const live = groups.filter(({ stepId, setAside }) => open.has(stepId) && setAside === null).length;
  assert.ok(live <= most, `${live} groups in open steps, ${most} allowed`);
  assert.ok(open.size <= (ahead ? 2 : 1), "a step gathers while at most one is updated");
}
