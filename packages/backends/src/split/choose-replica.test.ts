import fc from "fast-check";
import { expect, test } from "vitest";
import { chooseReplica, type Route } from "./choose-replica.ts";

const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e"), { minLength: 1 });
const keys = fc.array(fc.stringMatching(/^[a-z0-9]{1,6}$/), { minLength: 1, maxLength: 60 });

/** Sends one request of each key in turn. */
function send(
  routes: Map<string, Route>,
  asked: readonly string[],
  replicas: readonly string[],
  now = 0,
): Map<string, Route> {
  const after = new Map(routes);
  for (const key of asked) {
    const replica = chooseReplica(after, { key, replicas, now });
    if (replica !== null) after.set(key, { replica, usedAt: now });
  }
  return after;
}
const placesOf = (routes: ReadonlyMap<string, Route>) =>
  new Map([...routes].map(([key, { replica }]) => [key, replica]));

test("there is always one of those that answer, and none where nobody does", () => {
  fc.assert(
    fc.property(keys, names, names, (asked, before, replicas) => {
      const routes = send(new Map(), asked, before);
      for (const key of asked) expect(replicas).toContain(chooseReplica(routes, { key, replicas, now: 0 }));
      expect(chooseReplica(routes, { key: "any", replicas: [], now: 0 })).toBeNull();
    }),
  );
});

test("a rollout's turns stay where they are while that replica answers, whoever comes beside it", () => {
  fc.assert(
    fc.property(keys, names, names, (asked, replicas, more) => {
      const routes = send(new Map(), asked, replicas);
      const later = send(routes, asked, [...new Set([...replicas, ...more])], 5_000_000);
      expect(placesOf(later)).toEqual(placesOf(routes));
    }),
  );
});

test("when a replica is gone its own rollouts move, and no others; its return moves nobody", () => {
  fc.assert(
    fc.property(keys, fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 2 }), (asked, replicas) => {
      const [lost, ...left] = replicas;
      const before = send(new Map(), asked, replicas);
      const after = send(before, asked, left);
      for (const [key, replica] of placesOf(before))
        if (replica !== lost) expect(after.get(key)?.replica).toBe(replica);
      expect(placesOf(send(after, asked, replicas))).toEqual(placesOf(after));
    }),
  );
});

test("rollouts that are new spread evenly; those that rest weigh nothing", () => {
  fc.assert(
    fc.property(keys, keys, names, (asked, late, replicas) => {
      const spread = (routes: ReadonlyMap<string, Route>, of: ReadonlySet<string>): number => {
        const counts = replicas.map(
          (name) => [...routes].filter(([key, { replica }]) => of.has(key) && replica === name).length,
        );
        return Math.max(...counts) - Math.min(...counts);
      };
      const first = send(new Map(), asked, replicas);
      expect(spread(first, new Set(asked))).toBeLessThanOrEqual(1);
      const fresh = new Set(late.filter((key) => !asked.includes(key)));
      expect(spread(send(first, [...fresh], replicas, 60_000), fresh)).toBeLessThanOrEqual(1);
    }),
  );
});

test("the order of the replicas does not matter", () => {
  fc.assert(
    fc.property(keys, names, (asked, replicas) => {
      expect(placesOf(send(new Map(), asked, [...replicas].reverse()))).toEqual(
        placesOf(send(new Map(), asked, replicas)),
      );
    }),
  );
});
