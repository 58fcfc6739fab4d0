/** How far the groups of an update lie behind the weights that it changes. Pure. */

/**
 * By group, the learner's version minus the oldest version that one of its rollouts began with. Groups of which no version is
 * known are left out.
 * @param learner the version that the update starts from
 */
export function staleness(
  rollouts: readonly { readonly groupId: string; readonly firstVersion: number | null }[],
  learner: number,
): { readonly "staleness/mean"?: number; readonly "staleness/max"?: number } {
  const oldest = new Map<string, number>();
  for (const { groupId, firstVersion } of rollouts)
    if (firstVersion !== null) oldest.set(groupId, Math.min(oldest.get(groupId) ?? firstVersion, firstVersion));
  if (oldest.size === 0) return {};
  const ages = [...oldest.values()].map((version) => learner - version);
  return {
    "staleness/mean": ages.reduce((sum, age) => sum + age, 0) / ages.length,
    "staleness/max": ages.reduce((most, age) => Math.max(most, age)),
  };
}
