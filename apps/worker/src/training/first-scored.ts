/** Of groups that were started larger than they need be: the rollouts that were scored first. Pure. */

interface Settled {
  readonly groupId: string;
  readonly reward: number | null;
  readonly settledAtMs: number;
}

/**
 * At most `groupSize` scored rollouts of each group, those that settled first; what is not scored stays, for the group policy to
 * judge. In the order given. A plan may come a moment after more than enough are scored: which are trained must not depend on it.
 */
export function firstScored<R extends Settled>(rollouts: readonly R[], groupSize: number): R[] {
  const scored = new Map<string, R[]>();
  for (const rollout of rollouts)
    if (rollout.reward !== null) scored.set(rollout.groupId, [...(scored.get(rollout.groupId) ?? []), rollout]);
  const surplus = [...scored.values()].flatMap((group) =>
    [...group].sort((a, b) => a.settledAtMs - b.settledAtMs).slice(groupSize),
  );
  const left = new Set(surplus);
  return rollouts.filter((rollout) => !left.has(rollout));
}
