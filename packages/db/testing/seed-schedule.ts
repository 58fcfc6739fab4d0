/**
 * A step as a scheduler left it: every rollout through three bounded stages, made directly. Deterministic but for ids and for where
 * now is. Some attempts are lost and taken again; with `elapsedS` the step is under way, and what lies ahead is not there yet.
 */
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { Bounds } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { newId } from "../src/new-id.ts";

export interface SeededScheduleOptions {
  readonly step: number;
  readonly groups: number;
  readonly groupSize: number;
  readonly bounds: Bounds;
  /** Seconds of the stages in the mean. */
  readonly meanS?: Readonly<Record<Stage, number>>;
  /** Seconds since the step began, now; absent: it is over, and ended this second. */
  readonly elapsedS?: number;
  readonly sandboxes?: boolean;
}
export interface SeededSchedule {
  readonly stepId: string;
  readonly rolloutIds: readonly string[];
  /** When all of it is done, seconds from its start. */
  readonly lastS: number;
}
interface Span {
  readonly rollout: number;
  readonly attempt: number;
  readonly stage: number;
  readonly readyS: number;
  readonly startedS: number;
  readonly endedS: number;
}

const updateS = 20;

/** Every `stride`-th rollout loses its first attempt half-way through the run stage. */
const lossStride = 23;

/** 0.4 … 2.6, most below 1, the same for the same place. */
function spread(place: number): number {
  const hash = Math.imul(place * 2_654_435_761 + 40_503, 2_246_822_519) >>> 0;
  const share = hash / 2 ** 32;
  return 0.4 + 2.2 * share ** 2.2;
}

function scheduleOf(options: SeededScheduleOptions): { spans: Span[]; settledS: number[] } {
  const mean = options.meanS ?? { init: 6, run: 24, evaluate: 9 };
  const count = options.groups * options.groupSize;
  const spans: Span[] = [];
  const settledS = Array.from({ length: count }, () => 0);
  const free = stages.map((stage) => Array.from({ length: options.bounds[stage] }, () => 0));
  const waiting = Array.from({ length: count }, (_, rollout) => ({ rollout, attempt: 1, stage: 0, readyS: 0 }));
  // Latest first: the next one is popped.
  waiting.reverse();
  const put = (one: (typeof waiting)[number]) => {
    let [low, high] = [0, waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((waiting[middle]?.readyS ?? 0) > one.readyS) low = middle + 1;
      else high = middle;
    }
    waiting.splice(low, 0, one);
  };
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const slots = free[next.stage] ?? [];
    const slot = slots.indexOf(Math.min(...slots));
    const startedS = Math.max(next.readyS, slots[slot] ?? 0);
    const instance = spread(Math.floor(next.rollout / options.groupSize) * 3 + next.stage);
    const own = spread(next.rollout * 7 + next.stage * 3 + next.attempt * 13);
    const lost = next.stage === 1 && next.attempt === 1 && next.rollout % lossStride === lossStride - 1;
    const takesS = mean[stages[next.stage] ?? "run"] * Math.sqrt(instance * own) * (lost ? 0.5 : 1);
    const endedS = startedS + takesS;
    slots[slot] = endedS;
    spans.push({ ...next, startedS, endedS });
    if (lost) put({ rollout: next.rollout, attempt: 2, stage: 0, readyS: endedS });
    else if (next.stage < 2) put({ ...next, stage: next.stage + 1, readyS: endedS });
    else settledS[next.rollout] = endedS;
  }
  return { spans, settledS };
}

export async function seedSchedule(
  pool: pg.Pool,
  runId: string,
  options: SeededScheduleOptions,
): Promise<SeededSchedule> {
  const client = await pool.connect();
  try {
    // One transaction: all of it has the same now.
    await client.query("begin");
    const seeded = await putSchedule(client, runId, options);
    await client.query("commit");
    return seeded;
  } finally {
    client.release();
  }
}

async function putSchedule(
  pool: pg.PoolClient,
  runId: string,
  options: SeededScheduleOptions,
): Promise<SeededSchedule> {
  const { spans, settledS } = scheduleOf(options);
  const lastS = Math.max(...settledS);
  const nowS = options.elapsedS ?? lastS + updateS;
  const stepId = newId();
  const state = nowS >= lastS + updateS ? "done" : nowS >= lastS ? "updating" : "gathering";
  const past = (s: number) => (s <= nowS ? s : null);
  await pool.query(
    `insert into steps (id, run_id, purpose, step, state, source, created_at, gathered_at, update_started_at, ended_at)
     values ($1, $2, 'train', $3, $4, 'planned', now() - $5::float8 * interval '1 s',
       now() - ($5::float8 - $6::float8) * interval '1 s', now() - ($5::float8 - $6::float8) * interval '1 s',
       now() - ($5::float8 - $7::float8) * interval '1 s')`,
    [stepId, runId, options.step, state, nowS, past(lastS), past(lastS + updateS)],
  );
  const rolloutIds = await seedRows(pool, { runId, stepId, options, spans, settledS, nowS });
  const shown = spans.filter((span) => span.readyS <= nowS);
  await pool.query(
    `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, ended_at, worker_id)
     select r, a, s, $1, now() - ($2 - ready) * interval '1 s', now() - ($2 - started) * interval '1 s',
       now() - ($2 - ended) * interval '1 s', 'w1'
     from unnest($3::text[], $4::int[], $5::text[], $6::float8[], $7::float8[], $8::float8[]) t (r, a, s, ready, started, ended)`,
    [
      runId,
      nowS,
      shown.map((span) => rolloutIds[span.rollout]),
      shown.map((span) => span.attempt),
      shown.map((span) => stages[span.stage]),
      shown.map((span) => span.readyS),
      shown.map((span) => past(span.startedS)),
      shown.map((span) => past(span.endedS)),
    ],
  );
  await seedTurns(pool, { rolloutIds, spans, nowS });
  if (options.sandboxes) await seedSandboxes(pool, { runId, rolloutIds, spans, nowS });
  return { stepId, rolloutIds, lastS };
}

async function seedRows(
  pool: pg.PoolClient,
  parts: {
    readonly runId: string;
    readonly stepId: string;
    readonly options: SeededScheduleOptions;
    readonly spans: readonly Span[];
    readonly settledS: readonly number[];
    readonly nowS: number;
  },
): Promise<string[]> {
  const { runId, stepId, options, spans, settledS, nowS } = parts;
  const groupIds = Array.from({ length: options.groups }, () => newId());
  await pool.query(
    `insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id)
     select id, $2, $3, n - 1, 0, 'key-chain', 'train', n, 'train-' || n from unnest($1::text[]) with ordinality g (id, n)`,
    [groupIds, runId, stepId],
  );
  const newest = new Map<number, Span>();
  for (const span of spans) if (span.readyS <= nowS) newest.set(span.rollout, span);
  const rows = settledS.map((settled, rollout) => {
    const last = newest.get(rollout);
    const state =
      settled <= nowS ? "settled" : last && last.startedS <= nowS && last.endedS > nowS ? "active" : "waiting";
    return { id: newId(), rollout, attempt: last?.attempt ?? 1, stage: stages[last?.stage ?? 0], state, settled };
  });
  await pool.query(
    `insert into rollouts (id, run_id, step_id, group_id, sample, seed, attempt, stage, state, claim, outcome, ending, reward,
       success, settled_at)
     select id, $1, $2, ($3::text[])[1 + n / $4], n % $4, n, attempt, stage, state, 1,
       case when state = 'settled' then 'completed' end, case when state = 'settled' then 'finish_tool' end,
       case when state = 'settled' then n % 3 / 2.0 end, case when state = 'settled' then n % 3 = 2 end,
       case when state = 'settled' then now() - ($5 - settled) * interval '1 s' end
     from unnest($6::text[], $7::int[], $8::int[], $9::text[], $10::text[], $11::float8[])
       r (id, n, attempt, stage, state, settled)`,
    [
      runId,
      stepId,
      groupIds,
      options.groupSize,
      nowS,
      rows.map((row) => row.id),
      rows.map((row) => row.rollout),
      rows.map((row) => row.attempt),
      rows.map((row) => row.stage),
      rows.map((row) => row.state),
      rows.map((row) => row.settled),
    ],
  );
  return rows.map((row) => row.id);
}

interface Seeded {
  readonly rolloutIds: readonly string[];
  readonly spans: readonly Span[];
  readonly nowS: number;
}

/** Four turns of a run stage: most of each is the model's, the rest a tool's. */
async function seedTurns(pool: pg.PoolClient, { rolloutIds, spans, nowS }: Seeded): Promise<void> {
  const turns = spans
    .filter(({ stage }) => stage === 1)
    .flatMap(({ rollout, attempt, startedS, endedS }) =>
      [0, 1, 2, 3].map((turn) => ({ rollout, attempt, turn, takesS: (endedS - startedS) / 4, from: startedS })),
    )
    .map((turn) => ({ ...turn, atS: turn.from + (turn.turn + 0.7) * turn.takesS }))
    .filter(({ atS }) => atS <= nowS);
  const columns = [
    turns.map((turn) => rolloutIds[turn.rollout]),
    turns.map((turn) => turn.attempt),
    turns.map((turn) => turn.turn),
  ];
  await pool.query(
    `insert into transitions (rollout_id, attempt, turn, claim, prompt_ranges, prompt_tokens, sampled_segment, sampled_tokens,
       stop_reason, policy_version, cache_hit_tokens, sample_ms, at)
     select r, a, t, 1, '{}', 100, 2 * t + 1, 40, 'stop', 0, 0, ms, now() - ago * interval '1 s'
     from unnest($1::text[], $2::int[], $3::int[], $4::float8[], $5::float8[]) v (r, a, t, ms, ago)`,
    [...columns, turns.map((turn) => turn.takesS * 650), turns.map((turn) => nowS - turn.atS)],
  );
  await pool.query(
    `insert into tool_calls (rollout_id, attempt, turn, index, name, arguments, raw, state, duration_ms)
     select r, a, t, 0, 'get', '{}', 'get()', 'ended', ms
     from unnest($1::text[], $2::int[], $3::int[], $4::float8[]) v (r, a, t, ms)`,
    [...columns, turns.map((turn) => turn.takesS * 200)],
  );
}

/** An agent's from the start of init to the end of run, and one to grade in. */
async function seedSandboxes(
  pool: pg.PoolClient,
  { runId, rolloutIds, spans, nowS }: Seeded & { readonly runId: string },
): Promise<void> {
  const runs = new Map(
    spans.filter(({ stage }) => stage === 1).map((span) => [`${span.rollout}.${span.attempt}`, span]),
  );
  const runEnd = ({ rollout, attempt }: Span) => runs.get(`${rollout}.${attempt}`);
  const rows = spans
    .filter(({ stage, startedS }) => stage !== 1 && startedS <= nowS)
    .map((span) => {
      const closedS = span.stage === 0 ? (runEnd(span)?.endedS ?? Number.POSITIVE_INFINITY) : span.endedS;
      return { span, closedS: closedS <= nowS ? closedS : null, purpose: span.stage === 0 ? "agent" : "grade" };
    });
  await pool.query(
    `insert into sandboxes (id, run_id, rollout_id, attempt, purpose, claim, runtime, image, network, state, created_at, opened_at,
       closed_at)
     select id, $1, r, a, purpose, 1, 'docker', 'example/repo:latest', 'none',
       case when closed is null then 'open' else 'closed' end, now() - ($2 - opened) * interval '1 s',
       now() - ($2 - opened) * interval '1 s', now() - ($2 - closed) * interval '1 s'
     from unnest($3::text[], $4::text[], $5::int[], $6::text[], $7::float8[], $8::float8[]) s (id, r, a, purpose, opened, closed)`,
    [
      runId,
      nowS,
      rows.map(() => `sbx_${newId().slice(-20)}`),
      rows.map((row) => rolloutIds[row.span.rollout]),
      rows.map((row) => row.span.attempt),
      rows.map((row) => row.purpose),
      rows.map((row) => row.span.startedS),
      rows.map((row) => row.closedS),
    ],
  );
}
