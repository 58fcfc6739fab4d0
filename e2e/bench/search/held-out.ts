/**
 * How well a ranking does on a package that it was not chosen on: for each package the ranking is the one that is best over the
 * others' patches, and its own patches are asked with that. Pure.
 */

interface RankedScore {
  readonly package: string;
  /** Recall by ranking, in the order of the rankings. */
  readonly recalls: readonly number[];
}

interface HeldOut {
  /** Place of the ranking that the other packages chose. */
  readonly chosen: number;
  readonly queries: number;
  readonly recall: number;
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** By package; of equally good rankings the first is taken. */
export function heldOut(scores: readonly RankedScore[]): ReadonlyMap<string, HeldOut> {
  const packages = [...new Set(scores.map((score) => score.package))];
  return new Map(
    packages.map((name) => {
      const others = scores.filter((score) => score.package !== name);
      const own = scores.filter((score) => score.package === name);
      const means = (own[0]?.recalls ?? []).map((_, ranking) =>
        mean(others.map(({ recalls }) => recalls[ranking] ?? 0)),
      );
      const chosen = means.indexOf(Math.max(...means));
      return [name, { chosen, queries: own.length, recall: mean(own.map(({ recalls }) => recalls[chosen] ?? 0)) }];
    }),
  );
}
