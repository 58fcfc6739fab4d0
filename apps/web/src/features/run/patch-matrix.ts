/** Applies rollout events to a matrix; groups and cells that did not change keep their identity. Pure. */
import type { Matrix } from "@rolldeck/contracts/api/runs";
import type { RunEvent } from "@rolldeck/contracts/events";

type Cell = Matrix["groups"][number]["cells"][number];

function changesOf(events: readonly RunEvent[]): Map<string, Partial<Cell>> {
  const changes = new Map<string, Partial<Cell>>();
  const add = (rolloutId: string, change: Partial<Cell>) =>
    changes.set(rolloutId, { ...changes.get(rolloutId), ...change });
  for (const { body } of events) {
    if (body.type === "rollout-status") {
      const { attempt, stage, state, outcome, ending, reward, success } = body;
      add(body.rolloutId, { attempt, stage, state, outcome, ending, reward, success });
    } else if (body.type === "rollouts-moved") {
      for (const rolloutId of body.rolloutIds) add(rolloutId, { stage: body.stage, state: body.state });
    } else if (body.type === "turn-sampled") {
      add(body.rolloutId, { attempt: body.attempt, turns: body.turn + 1 });
    }
  }
  return changes;
}

const meanReward = (cells: readonly Cell[]): number | null => {
  const rewards = cells.flatMap((cell) => (cell.reward === null ? [] : [cell.reward]));
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
};

export function patchMatrix(matrix: Matrix, events: readonly RunEvent[]): Matrix {
  const changes = changesOf(events);
  if (changes.size === 0) return matrix;
  let touched = false;
  const groups = matrix.groups.map((group) => {
    if (!group.cells.some((cell) => changes.has(cell.rolloutId))) return group;
    touched = true;
    const cells = group.cells.map((cell) => {
      const change = changes.get(cell.rolloutId);
      if (!change) return cell;
      // A new attempt starts again from turn 0.
      const restarted = change.attempt !== undefined && change.attempt > cell.attempt && change.turns === undefined;
      return { ...cell, ...(restarted ? { turns: 0 } : {}), ...change };
    });
    return { ...group, cells, mean: meanReward(cells) };
  });
  return touched ? { ...matrix, groups } : matrix;
}
