/**
 * The end of every statement that changes a run: number its events, log them, raise `wake`, notify. The run's row is locked here,
 * after everything else the statement touches (rollouts, then pools, then runs), and until commit: so `seq` has no gap
 * and follows the order of commits. A statement has this once, because a row can be updated once.
 */

export interface EventLog {
  /** Aggregates over `happened` that `set` reads as `c.<name>`: `sum(sampled) as sampled`. */
  readonly counts?: string;
  /** Further assignments to the run `r`. */
  readonly set?: string;
  /** SQL condition over `c` under which the run is woken; absent: never. */
  readonly wakes?: string;
}

/** Raising wake marks since when the run is behind. */
export const raiseWake = (condition: string): string =>
  `wake = r.wake + (${condition})::int, woken_at = case when (${condition}) and r.wake <= r.handled_wake then now() else r.woken_at end`;

/**
 * CTEs after one named `happened` (run_id, ord, type, rollout_id, body jsonb, …). They end in `numbered` (…, seq) and `bumped`
 * (id, first, last, at); read `(select count(sent) from notified)` in the last select so that the hint is sent.
 */
export function eventLog({ counts, set, wakes }: EventLog = {}): string {
  const assignments = ["next_seq = r.next_seq + c.n", wakes ? raiseWake(wakes) : "", set ?? ""].filter(Boolean);
  return `
counts as materialized (
  select run_id, count(*) as n ${counts ? `, ${counts}` : ""} from happened group by run_id
),
run_lock as materialized (
  select r.id from runs r join counts c on c.run_id = r.id order by r.id for no key update of r
),
bumped as (
  update runs r set ${assignments.join(", ")}
  from counts c where r.id = c.run_id and (select count(*) from run_lock) > 0
  returning r.id, r.next_seq - c.n as first, r.next_seq - 1 as last, clock_timestamp() as at
),
numbered as materialized (
  select h.*, b.at, b.first + row_number() over (partition by h.run_id order by h.ord) - 1 as seq
  from happened h join bumped b on b.id = h.run_id
),
logged as (
  insert into events (run_id, seq, at, type, rollout_id, body)
  select run_id, seq, at, type, rollout_id, body from numbered
),
notified as materialized (
  select pg_notify('rolldeck_events', json_build_object('runId', id, 'seq', last)::text) as sent from bumped
)`;
}

/** Body of a `rollout-status` event from SQL expressions; what is left out is null. */
export function rolloutStatus(
  of: Readonly<Record<"rolloutId" | "attempt" | "stage" | "state" | "claim", string>> &
    Readonly<Partial<Record<"outcome" | "ending" | "reward" | "success" | "reason", string>>>,
): string {
  const facts = { outcome: "null", ending: "null", reward: "null", success: "null", reason: "null", ...of };
  const pairs = Object.entries(facts).map(([name, sql]) => `'${name}', ${sql}`);
  return `jsonb_build_object('type', 'rollout-status', ${pairs.join(", ")})`;
}
