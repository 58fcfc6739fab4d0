/** Looks at pools again and again while a run runs: what holds only at the end could have been broken meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "@rolldeck/db/connect";
import { z } from "zod";

const everyMs = 100;

const Look = z.object({
  resource: z.string(),
  size: z.int(),
  used: z.int(),
  leases: z.int(),
  /** Leases of rollouts that are settled. */
  stray: z.int(),
});

// One statement, so that all of it is of one moment.
const sql = `
select p.resource, p.size, p.used, count(l.rollout_id)::int as leases,
  count(*) filter (where l.rollout_id is not null and r.state = 'settled')::int as stray
from pools p left join pool_leases l on l.resource = p.resource left join rollouts r on r.id = l.rollout_id
group by p.resource, p.size, p.used`;

/** Pools above their size, that miscount, or that hold room for who is gone: empty when all is well. */
export async function brokenPools(pool: Pool): Promise<string[]> {
  const looks = z.array(Look).parse((await pool.query(sql)).rows);
  return looks
    .filter(({ size, used, leases, stray }) => used > size || leases !== used || stray > 0)
    .map((look) => `a pool is not as it must be: ${JSON.stringify(look)}`);
}

export interface WatchedPools {
  readonly looks: number;
  /** @returns what was broken at any look, each once */
  end(): Promise<string[]>;
}

export function watchPools(pool: Pool): WatchedPools {
  const broken = new Set<string>();
  let [looks, isOver] = [0, false];
  const watch = async (): Promise<void> => {
    for (; !isOver; await sleep(everyMs)) {
      // While Postgres is away there is nothing to see.
      const found = await brokenPools(pool).catch(() => null);
      if (found !== null) looks++;
      for (const each of found ?? []) broken.add(each);
    }
  };
  const watching = watch();
  return {
    get looks() {
      return looks;
    },
    end: async () => {
      isOver = true;
      await watching;
      return [...broken];
    },
  };
}
