/** The planner on snapshots that no story leads to. */
import { endedRunStatuses, hasEdge, rolloutEdges, runEdges, stepEdges } from "@rolldeck/contracts/lifecycle";
import { type Action, type Resource, type RunSnapshot, resources } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { expect, test } from "vitest";
import { counts } from "../testing/build-snapshot.ts";
import { now, someGrants, someSnapshot } from "../testing/some-snapshot.ts";
import { plan } from "./plan.ts";

function checkLegal(snapshot: RunSnapshot, action: Action): void {
  if (action.do === "move-run") {
    expect(action.from).toBe(snapshot.status);
    expect(hasEdge(runEdges, action.from, action.to)).toBe(true);
  } else if (action.do === "set-aside" || action.do === "add-groups") {
    expect(snapshot.steps.find(({ stepId }) => stepId === action.stepId)?.state).toBe("gathering");
    if (action.do === "add-groups") expect(snapshot.draining).toBe(false);
    else expect(snapshot.groups?.find(({ groupId }) => groupId === action.groupId)?.setAside).toBeNull();
  } else if ("stepId" in action) {
    const step = snapshot.steps.find(({ stepId }) => stepId === action.stepId);
    const to = action.do === "end-step" ? action.to : "updating";
    expect(step && (action.do === "redeliver-update" ? step.state === to : hasEdge(stepEdges, step.state, to))).toBe(
      true,
    );
  } else if ("rolloutId" in action) {
    const rollout = snapshot.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId);
    expect(rollout?.attempt).toBe(action.attempt);
    const to = {
      admit: "queued",
      redeliver: "queued",
      retry: "waiting",
      regrade: "waiting",
      settle: "settled",
    } as const;
    const state = rollout?.state ?? "settled";
    expect(state === to[action.do] || hasEdge(rolloutEdges, state, to[action.do])).toBe(true);
    expect(state).not.toBe("settled");
  }
}

/** Rows that an action moves; a group takes its unsettled rollouts along. */
const movedBy =
  ({ rollouts }: RunSnapshot) =>
  (action: Action): string[] => {
    if ("rolloutId" in action) return [action.rolloutId];
    if (action.do !== "set-aside") return "stepId" in action ? [action.stepId] : [];
    const its = rollouts.filter(({ groupId, state }) => groupId === action.groupId && state !== "settled");
    return [action.groupId, ...its.map(({ rolloutId }) => rolloutId)];
  };

test("every action is an edge of the tables, and no row is moved twice", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const { actions, wakeAt } = plan(snapshot, grants);
      for (const action of actions) checkLegal(snapshot, action);
      const moved = actions.flatMap(movedBy(snapshot));
      expect(new Set(moved).size).toBe(moved.length);
      expect(wakeAt ?? now).toBeGreaterThanOrEqual(now);
    }),
    { numRuns: 500 },
  );
});

test("admissions spend the grants and no more, and take no lease twice", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const spent: Record<Resource, number> = { ...snapshot.held };
      for (const action of plan(snapshot, grants).actions) {
        if (action.do !== "admit") continue;
        const holds = snapshot.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId)?.holds ?? [];
        for (const { resource } of action.leases) {
          expect(holds).not.toContain(resource);
          spent[resource] += 1;
        }
      }
      for (const resource of resources) {
        expect(spent[resource]).toBeLessThanOrEqual(Math.max(grants[resource], snapshot.held[resource]));
      }
    }),
    { numRuns: 500 },
  );
});

/** All that is left is what a person holds: the next word is that person's. */
function restsOnPerson({ rollouts, groups = [] }: RunSnapshot): boolean {
  const heldGroups = new Set(groups.filter(({ held }) => held).map(({ groupId }) => groupId));
  const left = rollouts.filter(({ state }) => state !== "settled");
  return left.length > 0 && left.every(({ held, groupId }) => held || heldGroups.has(groupId));
}

test("a run with leases to spend always has something to do or a time to look again", () => {
  fc.assert(
    fc.property(someSnapshot, (snapshot) => {
      const { actions, wakeAt } = plan(snapshot, counts(100));
      const rests =
        endedRunStatuses.includes(snapshot.status) || snapshot.status === "paused" || restsOnPerson(snapshot);
      const waitsForTrainer = snapshot.config.stepSource === "driven";
      if (!rests && !waitsForTrainer) expect(actions.length > 0 || wakeAt !== null).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("a plan is a function of its arguments and leaves them alone", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const copy = structuredClone(snapshot);
      expect(plan(snapshot, grants)).toEqual(plan(copy, grants));
      expect(snapshot).toEqual(copy);
    }),
    { numRuns: 200 },
  );
});
