/** Which groups of a train step are trained, set aside, drawn again or moved on. */
import type { Action, GroupSnapshot, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { describe, expect, test } from "vitest";
import {
  buildConfig,
  buildGroup,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
  lost,
  scored,
} from "../testing/build-snapshot.ts";
import { drawGroups } from "./draw-groups.ts";
import { plan } from "./plan.ts";

const now = 1_000_000;
/** A group of two rollouts as its rewards tell: null = it runs still. */
const group = (name: string, rewards: readonly (number | null)[], over: Partial<RolloutSnapshot> = {}) =>
  rewards.map((reward, sample) => {
    const own = { ...over, rolloutId: `${name}-${sample}`, groupId: name, sample };
    if (reward !== null) return scored({ settledAt: now - 50, ...own, reward });
    return buildRollout({ ...own, stage: "run", state: "active", leaseUntil: now + 9_000 });
  });
const row = (groupId: string, over: Partial<GroupSnapshot> = {}) => buildGroup({ groupId, ...over });

function decided(
  dispatcher: RunConfigInput["dispatcher"],
  rollouts: readonly RolloutSnapshot[],
  over: Partial<RunSnapshot> = {},
): Action[] {
  const config = buildConfig({ dispatcher, budget: { steps: 9 } });
  const ids = new Set(rollouts.map(({ groupId }) => groupId));
  const groups = [...ids].map((id) => row(id));
  const base = { config, steps: [buildStep()], rollouts, groups, groupsDrawn: ids.size };
  return [...plan(buildSnapshot({ ...base, ...over }), counts(100)).actions].filter((action) => action.do !== "admit");
}
const brief = (actions: readonly Action[]) =>
  actions.map((action) => {
    if (action.do === "set-aside") return `${action.groupId} ${action.as}`;
    if (action.do === "add-groups") return `add ${action.groups.map(({ replaces }) => replaces ?? "next")}`;
    if (action.do === "begin-update")
      return `update ${action.stepId}${action.leave ? `, leave ${action.leave.groupIds}` : ""}`;
    return action.do === "settle" ? `${action.rolloutId} ${action.ending}` : action.do;
  });

describe("more groups than the step needs", () => {
  const more = { overSample: { groups: 1, rollouts: 1 } };

  test("are started with more rollouts than they need", () => {
    const [action] = plan(
      buildSnapshot({ config: buildConfig({ dispatcher: more }), groupsDrawn: 5 }),
      counts(9),
    ).actions;
    expect(action).toMatchObject({ do: "create-step", groupSize: 3 });
    const groups = action?.do === "create-step" ? action.groups : [];
    expect(groups).toEqual(drawGroups(buildSnapshot({ config: buildConfig() }), 5, 3));
  });

  test("the first to be complete are trained, the rest is cut", () => {
    const late = group("late", [1, 0], { settledAt: now - 10 });
    const rollouts = [...late, ...group("a", [1, 0, null]), ...group("b", [1, 0]), ...group("open", [1, null, null])];
    expect(brief(decided(more, rollouts))).toEqual([
      "a-2 not_needed",
      "late not-needed",
      "open not-needed",
      "update step-1",
    ]);
  });

  test("until so many are complete, the step gathers", () => {
    expect(decided(more, [...group("a", [1, 0]), ...group("b", [1, null, null])])).toEqual([]);
  });

  test("a group without a score does not count, and the step does with fewer when no more can come", () => {
    const bad = [lost({ rolloutId: "bad-0", groupId: "bad" }), lost({ rolloutId: "bad-1", groupId: "bad" })];
    expect(brief(decided(more, [...bad, ...group("a", [1, 0])]))).toEqual(["update step-1"]);
  });
});

describe("groups of equal rewards", () => {
  const flat = group("flat", [1, 1]);
  const filter = { zeroVariance: { mode: "filter" as const } };
  const replace = { zeroVariance: { mode: "replace" as const, maxReplaced: 1 } };

  test("are kept unless the config says otherwise", () => {
    expect(brief(decided({}, [...flat, ...group("a", [1, 0])]))).toEqual(["update step-1"]);
  });

  test("filter: are set aside when the step has gathered, not before", () => {
    expect(decided(filter, [...flat, ...group("a", [1, null])])).toEqual([]);
    expect(brief(decided(filter, [...flat, ...group("a", [1, 0])]))).toEqual(["flat zero-variance", "update step-1"]);
  });

  test("filter: a step of nothing else ends without an update and says why", () => {
    const actions = decided(filter, [...flat, ...group("b", [0, 0])]);
    expect(brief(actions)).toEqual(["flat zero-variance", "b zero-variance", "end-step", "note"]);
    expect(actions.find((action) => action.do === "end-step")).toMatchObject({
      to: "failed",
      reason: "no variance: the rewards of each of 2 groups were equal: 4 × finished",
    });
  });

  test("replace: the next instance is drawn in its place as soon as it is complete", () => {
    const actions = decided(replace, [...flat, ...group("a", [1, null])]);
    expect(brief(actions)).toEqual(["flat zero-variance", "add flat"]);
    const [next] = drawGroups(buildSnapshot({ config: buildConfig() }), 2, 1);
    expect(actions[1]).toMatchObject({ drawn: 2, groupSize: 2, groups: [{ ...next, replaces: "flat" }] });
  });

  test("replace: what was set aside and not replaced yet is, before the step goes on; not while the run drains", () => {
    const groups = [row("flat", { setAside: "zero-variance" }), row("a")];
    const rollouts = [...flat, ...group("a", [1, 0])];
    expect(brief(decided(replace, rollouts, { groups }))).toEqual(["add flat"]);
    expect(brief(decided(replace, rollouts, { groups, draining: true }))).toEqual(["move-run"]);
  });

  test("replace: beyond the bound they are left out", () => {
    const groups = [row("gone", { setAside: "zero-variance" }), row("flat", { replaces: "gone" }), row("a")];
    const rollouts = [...group("gone", [0, 0]), ...flat, ...group("a", [1, 0])];
    expect(brief(decided(replace, rollouts, { groups }))).toEqual(["flat zero-variance", "update step-1"]);
  });

  test("a group of one has no other to be equal to", () => {
    const config = buildConfig({ algorithm: { groupsPerStep: 1, groupSize: 1 }, dispatcher: filter });
    const snapshot = buildSnapshot({ config, steps: [buildStep()], rollouts: [scored()] });
    expect(brief(plan(snapshot, counts(9)).actions)).toEqual(["update step-1"]);
  });
});

describe("groups ahead of their update", () => {
  const ahead = { name: "async", maxStaleness: 1 };
  const at = (firstVersion: number) => ({ firstVersion, stepId: "train-4" });
  const steps = [buildStep({ stepId: "train-4", step: 4 })];
  const serving = { servingVersion: 3, steps };
  const groupsIn = (ids: readonly string[]) => ids.map((id) => row(id, { stepId: "train-4" }));
  const four = [...group("old", [1, 0], at(2)), ...group("a", [1, 0], at(3)), ...group("b", [1, null], at(3))];
  const young = group("c", [1, 0], { ...at(3), settledAt: now - 60 });

  test("the oldest versions are trained first, then the first complete; the rest moves on with its rollouts", () => {
    const rollouts = [...four, ...young];
    const groups = groupsIn(["old", "a", "b", "c"]);
    const actions = decided(ahead, rollouts, { ...serving, groups });
    expect(actions).toEqual([{ do: "begin-update", stepId: "train-4", leave: { step: 5, groupIds: ["a", "b"] } }]);
  });

  test("the next step is made with none left over too, and planned at once", () => {
    const rollouts = [...group("old", [1, 0], at(2)), ...young];
    const snapshot = buildSnapshot({
      ...serving,
      config: buildConfig({ dispatcher: ahead, budget: { steps: 9 } }),
      rollouts,
      groups: groupsIn(["old", "c"]),
    });
    const { actions, wakeAt } = plan(snapshot, counts(9));
    expect(actions).toEqual([{ do: "begin-update", stepId: "train-4", leave: { step: 5, groupIds: [] } }]);
    expect(wakeAt).toBe(now);
  });

  test("not while another update runs, a version is measured, or one is to be", () => {
    const updating = buildStep({ stepId: "train-3", step: 3, state: "updating", updateLeaseUntil: now + 9 });
    const evaluating = buildStep({ stepId: "e", purpose: "evaluate", step: 3 });
    const rollouts = [...four, ...young];
    const groups = groupsIn(["old", "a", "b", "c"]);
    const busy = (over: Partial<RunSnapshot>) =>
      brief(decided(ahead, rollouts, { ...serving, groups, ...over })).filter((what) => what.startsWith("update"));
    expect(busy({ steps: [updating, ...steps], servingVersion: 2 })).toEqual([]);
    const running = buildRollout({ rolloutId: "e-1", groupId: "e", stepId: "e", state: "active", leaseUntil: now + 9 });
    expect(busy({ steps: [evaluating, ...steps], rollouts: [...rollouts, running] })).toEqual([]);
    expect(busy({})).toHaveLength(1);
  });

  test("an evaluation that is due is made beside the open step, before the next update", () => {
    const config = buildConfig({ dispatcher: ahead, budget: { steps: 9 }, evaluation: { samples: 1, every: 3 } });
    const groups = groupsIn(["old", "a", "b", "c"]);
    const snapshot = buildSnapshot({ ...serving, config, rollouts: [...four, ...young], groups });
    expect(plan(snapshot, counts(9)).actions).toMatchObject([{ do: "create-step", purpose: "evaluate", step: 3 }]);
  });

  test("as many groups are open as the updates within the bound can take, and no more than are left to make", () => {
    const rollouts = group("a", [1, null], at(3));
    const added = (dispatcher: RunConfigInput["dispatcher"], budget: number) => {
      const config = buildConfig({ dispatcher, budget: { steps: budget } });
      const snapshot = buildSnapshot({ ...serving, config, rollouts, groups: groupsIn(["a"]), groupsDrawn: 7 });
      const action = plan(snapshot, counts(9)).actions.find(({ do: kind }) => kind === "add-groups");
      return action?.do === "add-groups" ? action.groups.length : 0;
    };
    expect(added(ahead, 9)).toBe(3);
    expect(added({ ...ahead, maxStaleness: 3 }, 9)).toBe(7);
    expect(added(ahead, 4)).toBe(1);
  });

  test("what lies too far behind the next update is drawn again, the same instance", () => {
    const rollouts = [
      ...group("stale", [1, null], at(1)),
      ...group("a", [1, null], at(2)),
      ...group("b", [1, null], at(3)),
    ];
    const groups = groupsIn(["stale", "a", "b"]);
    const actions = decided(ahead, rollouts, { ...serving, groups, groupsDrawn: 11 });
    expect(brief(actions)).toEqual(["stale stale", "add stale,next"]);
    expect(actions[1]).toMatchObject({ drawn: 11, groups: [{ ...groups[0]?.instance, replaces: "stale" }, {}] });
  });

  test("the update under way counts: what it leaves behind by more than the bound is stale already", () => {
    const updating = buildStep({ stepId: "train-3", step: 3, state: "updating", updateLeaseUntil: now + 9 });
    const rollouts = [...group("a", [1, null], at(1)), ...group("b", [1, null], at(2))];
    const over = { steps: [updating, ...steps], servingVersion: 2, groups: groupsIn(["a", "b"]) };
    expect(brief(decided(ahead, rollouts, over))[0]).toBe("a stale");
  });

  test("what began now and would be stale at once waits for the version under way", () => {
    const updating = buildStep({ stepId: "train-3", step: 3, state: "updating", updateLeaseUntil: now + 9 });
    const waiting = buildRollout({ stage: "run", stepId: "train-4" });
    const admitted = (servingVersion: number) =>
      plan(
        buildSnapshot({
          config: buildConfig({ dispatcher: ahead }),
          steps: [updating, ...steps],
          servingVersion,
          rollouts: [waiting],
        }),
        counts(9),
      ).actions.filter(({ do: kind }) => kind === "admit").length;
    expect(admitted(2)).toBe(1);
    expect(admitted(1)).toBe(0);
  });

  test("a step that is cancelled beside an update leaves its place to the next one at once, within the same bounds", () => {
    const updating = buildStep({ stepId: "train-3", step: 3, state: "updating", updateLeaseUntil: now + 9 });
    const gone = buildStep({ stepId: "train-4", step: 4, state: "cancelled" });
    const trained = [...group("a", [1, 0], { stepId: "train-3" }), ...group("b", [1, 0], { stepId: "train-3" })];
    const groups = ["a", "b"].map((id) => row(id, { stepId: "train-3" }));
    const created = (budget: number, maxStaleness = 1, steps = [updating, gone]) => {
      const config = buildConfig({ dispatcher: { name: "async", maxStaleness }, budget: { steps: budget } });
      const over = { config, servingVersion: 2, groups, rollouts: trained, groupsDrawn: 9 };
      return plan(buildSnapshot({ ...over, steps }), counts(9)).actions.flatMap((action) =>
        action.do === "create-step" ? [[action.step, action.groups.length]] : [],
      );
    };
    expect(created(9)).toEqual([[5, 2]]);
    expect(created(9, 3)).toEqual([[5, 2]]);
    // One update is left beside the one under way, whatever number it has.
    expect(created(5)).toEqual([[5, 2]]);
    expect(created(4)).toEqual([]);
    expect(created(3, 1, [updating])).toEqual([]);
  });

  test("a group that can't be trained makes room for another", () => {
    const bad = [0, 1].map((sample) => lost({ rolloutId: `bad-${sample}`, groupId: "bad", stepId: "train-4" }));
    const actions = decided(ahead, [...bad, ...group("a", [1, 0], at(3))], {
      ...serving,
      groups: groupsIn(["bad", "a"]),
    });
    expect(brief(actions)).toEqual(["bad cancelled", "add next,next,next"]);
  });

  test("three batches of them end the step without an update", () => {
    const ids = Array.from({ length: 6 }, (_, at) => `bad-${at}`);
    const bad = ids.map((id) => lost({ rolloutId: id, groupId: id, stepId: "train-4" }));
    const groups = ids.map((id) => row(id, { stepId: "train-4", setAside: "cancelled" }));
    const actions = decided(ahead, bad, { ...serving, groups });
    expect(brief(actions)).toEqual(["end-step", "note"]);
    expect(actions[0]).toMatchObject({ to: "failed" });
  });

  test("the last step leaves nothing: what it does not need is set aside", () => {
    const config = buildConfig({ dispatcher: ahead, budget: { steps: 4 } });
    const groups = groupsIn(["old", "a", "b", "c"]);
    const snapshot = buildSnapshot({ ...serving, config, rollouts: [...four, ...young], groups });
    expect(brief(plan(snapshot, counts(9)).actions)).toEqual(["a not-needed", "b not-needed", "update train-4"]);
  });
});
