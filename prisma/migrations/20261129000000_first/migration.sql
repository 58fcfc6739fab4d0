-- The rows are the truth. Hot tables (rollouts, transitions, segments, tool_calls, events, leases, spans) are written only by
-- packages/db/src/hot. All times are timestamptz by the database's clock.

create table "rolldeck_marker" (
  "id" integer primary key default 1 check ("id" = 1),
  "created_at" timestamptz not null default now()
);
insert into "rolldeck_marker" ("id") values (1);

create table "runs" (
  "id" text primary key,
  "name" text not null,
  "project" text not null,
  "tags" text[] not null,
  "kind" text not null,
  "status" text not null,
  "reason" text,
  "config" jsonb not null,
  "seed" integer not null,
  "step_source" text not null,
  -- Raised by whatever changes the run; the reconciler copies the value it handled.
  "wake" bigint not null default 0,
  "handled_wake" bigint not null default 0,
  -- When wake last rose past handled_wake, and the next timer the planner asked for.
  "woken_at" timestamptz not null default now(),
  "wake_at" timestamptz,
  -- Sequence number the next event gets.
  "next_seq" bigint not null default 1,
  "step" integer not null default 0,
  "steps" integer not null,
  "serving_version" integer,
  "model_id" text,
  "model_boot_id" text,
  "sampling_session_id" text,
  -- Last training request number committed; raised before the request is sent.
  "trainer_seq" bigint not null default 0,
  "prepare_claim" bigint not null default 0,
  "prepare_lease_until" timestamptz,
  -- Null while the job is queued; a worker's id while it is held.
  "prepare_worker_id" text,
  "prepare_failures" integer not null default 0,
  "trainer_lease_until" timestamptz,
  "boot" jsonb,
  "sampled_tokens" bigint not null default 0,
  "created_at" timestamptz not null default now(),
  "status_since" timestamptz not null default now(),
  "started_at" timestamptz,
  "ended_at" timestamptz
);
create index "runs_created_at_idx" on "runs" ("created_at" desc, "id" desc);
create index "runs_status_idx" on "runs" ("status");

create table "steps" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "purpose" text not null,
  "step" integer not null,
  "state" text not null,
  "source" text not null,
  "batch_id" text,
  "policy_version" integer,
  "claim" bigint not null default 0,
  -- Null while the update job is queued; a worker's id while it is held.
  "worker_id" text,
  "lease_until" timestamptz,
  "update_failures" integer not null default 0,
  "reason" text,
  "created_at" timestamptz not null default now(),
  "gathered_at" timestamptz,
  "update_started_at" timestamptz,
  "ended_at" timestamptz,
  unique ("run_id", "purpose", "step")
);
create index "steps_open_idx" on "steps" ("run_id") where "state" in ('gathering', 'updating');

create table "groups" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "step_id" text not null references "steps" ("id") on delete cascade,
  "position" integer not null,
  "task_set" integer not null,
  "task" text not null,
  "split" text not null,
  "instance_index" integer not null,
  "instance_id" text not null
);
create index "groups_step_id_idx" on "groups" ("step_id", "position");

create table "rollouts" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "step_id" text not null references "steps" ("id") on delete cascade,
  "group_id" text not null references "groups" ("id") on delete cascade,
  "sample" integer not null,
  "seed" integer not null,
  "attempt" integer not null default 1,
  "stage" text not null default 'init',
  "state" text not null default 'waiting',
  "claim" bigint not null default 0,
  "deliveries" integer not null default 0,
  "worker_id" text,
  "lease_until" timestamptz,
  "not_before" timestamptz,
  "ready_at" timestamptz not null default now(),
  "stage_started_at" timestamptz,
  "outcome" text,
  "ending" text,
  -- How the run stage ended; kept while `ending` says how grading failed, so that grading can be tried again.
  "run_ending" text,
  "reason" text,
  "reward" double precision,
  "reward_parts" jsonb,
  "success" boolean,
  "final_answer" text,
  "turns" integer not null default 0,
  "sampled_tokens" integer not null default 0,
  "infrastructure_failures" integer not null default 0,
  "evaluate_failures" integer not null default 0,
  "created_at" timestamptz not null default now(),
  "settled_at" timestamptz,
  unique ("group_id", "sample")
) with (fillfactor = 70);
create index "rollouts_step_id_idx" on "rollouts" ("step_id");
create index "rollouts_run_id_idx" on "rollouts" ("run_id", "state");
create index "rollouts_lease_idx" on "rollouts" ("lease_until") where "state" in ('queued', 'active');

create table "attempts" (
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "attempt" integer not null,
  "started_at" timestamptz not null default now(),
  "ended_at" timestamptz,
  "reason" text,
  "turns" integer not null default 0,
  primary key ("rollout_id", "attempt")
);

-- segments, transitions, tool_calls and events refer to rows that their one writer holds locked while it writes; a foreign key would
-- check the same again, at a third of the cost of a turn (measured). Whatever deletes a run deletes them by hand.
-- Token storage: see packages/db/src/hot/token-codec.ts for both encodings.
create table "segments" (
  "rollout_id" text not null,
  "attempt" integer not null,
  "index" integer not null,
  "origin" text not null,
  "length" integer not null,
  "tokens" bytea not null,
  "logprobs" bytea,
  "policy_version" integer,
  primary key ("rollout_id", "attempt", "index")
);

create table "transitions" (
  "rollout_id" text not null,
  "attempt" integer not null,
  "turn" integer not null,
  "claim" bigint not null,
  -- Flat list start, end, start, end … over the trajectory's tokens.
  "prompt_ranges" integer[] not null,
  "prompt_tokens" integer not null,
  "sampled_segment" integer not null,
  "sampled_tokens" integer not null,
  "stop_reason" text not null,
  "policy_version" integer not null,
  "cache_hit_tokens" integer not null,
  "sample_ms" double precision not null,
  "parse_error" text,
  "at" timestamptz not null default now(),
  primary key ("rollout_id", "attempt", "turn")
);

create table "tool_calls" (
  "rollout_id" text not null,
  "attempt" integer not null,
  "turn" integer not null,
  "index" integer not null,
  "name" text not null,
  "arguments" jsonb not null,
  "raw" text not null,
  "state" text not null,
  "output" text,
  "error_code" text,
  "error_message" text,
  "duration_ms" double precision,
  -- Set when this call ended the rollout (the finish tool).
  "final_answer" text,
  primary key ("rollout_id", "attempt", "turn", "index")
);

create table "events" (
  "run_id" text not null,
  "seq" bigint not null,
  "at" timestamptz not null default now(),
  "type" text not null,
  "rollout_id" text,
  "body" jsonb not null,
  primary key ("run_id", "seq")
);

-- Newest batch each writer lane committed and what became of its entries: after a lost connection the writer reads here
-- whether its batch is in. Rows of writers that are gone are swept by age.
create table "writer_marks" (
  "writer_id" text not null,
  "lane" integer not null,
  "batch" bigint not null,
  -- Per entry of the batch: the seq it got, or −1 where it was fenced.
  "seqs" bigint[] not null,
  "at" timestamptz not null default now(),
  primary key ("writer_id", "lane")
);

-- The few events that a timeline marks, without reading the whole log.
create index "events_marks_idx" on "events" ("run_id", "seq")
  where "type" in ('run-status', 'version-serving', 'checkpoint-saved', 'model-adopted');

create table "stage_spans" (
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "attempt" integer not null,
  "stage" text not null,
  "run_id" text not null,
  -- Entered the stage's waiting line; got a claim; left the stage.
  "ready_at" timestamptz not null,
  "started_at" timestamptz,
  "ended_at" timestamptz,
  "worker_id" text,
  primary key ("rollout_id", "attempt", "stage")
);
create index "stage_spans_run_id_idx" on "stage_spans" ("run_id", "ready_at");

create table "metric_points" (
  "run_id" text not null references "runs" ("id") on delete cascade,
  "name" text not null,
  "step" integer not null,
  -- Postgres keeps NaN and infinities apart; a later write of the same step replaces (a resumed step counts once).
  "value" double precision not null,
  "at" timestamptz not null default now(),
  primary key ("run_id", "name", "step")
);

create table "pools" (
  "resource" text primary key,
  "size" integer not null check ("size" >= 0),
  "used" integer not null default 0 check ("used" >= 0 and "used" <= "size")
);
insert into "pools" ("resource", "size") values
  ('sandbox', 256), ('initSlot', 512), ('runSlot', 4096), ('gradeSlot', 512), ('gpu', 1);

create table "pool_grants" (
  "resource" text not null references "pools" ("resource"),
  "run_id" text not null references "runs" ("id") on delete cascade,
  -- Leases the run may hold in all.
  "granted" integer not null,
  primary key ("resource", "run_id")
);

create table "pool_leases" (
  "resource" text not null references "pools" ("resource"),
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "run_id" text not null,
  "attempt" integer not null,
  -- Stage at whose end it is released; settling and a new attempt release every lease.
  "until" text not null,
  "acquired_at" timestamptz not null default now(),
  primary key ("rollout_id", "resource")
);
create index "pool_leases_run_id_idx" on "pool_leases" ("run_id", "resource");

create table "policy_versions" (
  "run_id" text not null references "runs" ("id") on delete cascade,
  "version" integer not null,
  "step" integer not null,
  "state" text not null,
  "boot_id" text not null,
  "sampling_session_id" text,
  "created_at" timestamptz not null default now(),
  primary key ("run_id", "version")
);

create table "checkpoints" (
  "run_id" text not null references "runs" ("id") on delete cascade,
  "version" integer not null,
  "name" text not null,
  "path" text not null,
  "bytes" bigint,
  "state" text not null,
  "created_at" timestamptz not null default now(),
  primary key ("run_id", "version")
);

-- What an update trained, so that a lost update can be replayed exactly. Token ids and sampling logprobs stay in segments.
create table "training_rows" (
  "step_id" text not null references "steps" ("id") on delete cascade,
  "row" integer not null,
  "run_id" text not null,
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "attempt" integer not null,
  -- Flat start, end … over the trajectory's tokens, in order.
  "ranges" integer[] not null,
  -- Run-length list of (count, mask reason index or −1 where trained), flat.
  "mask" integer[] not null,
  "advantage" double precision not null,
  -- What every token's advantage is multiplied by before it is sent: weight ÷ denominator.
  "scale" double precision not null,
  -- False: counted, but no forward pass (zero variance, fully masked).
  "sent" boolean not null,
  -- Annotation written by the update: trainer logprobs, float32, one per token after the first.
  "trainer_logprobs" bytea,
  primary key ("step_id", "row")
);
create index "training_rows_rollout_id_idx" on "training_rows" ("rollout_id", "attempt");

create table "batch_requests" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "trainer_step" integer not null,
  "request" jsonb not null,
  "state" text not null,
  "step_id" text,
  "created_at" timestamptz not null default now(),
  "deadline_at" timestamptz,
  unique ("run_id", "trainer_step")
);

create table "workers" (
  "id" text primary key,
  "started_at" timestamptz not null default now(),
  "last_seen_at" timestamptz not null default now(),
  "stages" integer not null default 0
);

-- One row per supervised GPU worker; `boot` holds the progress of its environment's install and start.
create table "gpu_workers" (
  "name" text primary key,
  "url" text,
  "state" text not null,
  "boot" jsonb,
  "device" text,
  "boot_id" text,
  "last_seen_at" timestamptz,
  "updated_at" timestamptz not null default now()
);

create table "sign_in_codes" (
  "hash" text primary key,
  "expires_at" timestamptz not null,
  "used_at" timestamptz
);
create table "sessions" (
  "hash" text primary key,
  "created_at" timestamptz not null default now(),
  "expires_at" timestamptz not null
);
create table "api_tokens" (
  "id" text primary key,
  "name" text not null,
  "hash" text not null unique,
  "scope" text not null,
  "created_at" timestamptz not null default now(),
  "last_used_at" timestamptz,
  "revoked_at" timestamptz
);
create table "idempotency_keys" (
  "key" text not null,
  "principal" text not null,
  "route" text not null,
  "body_hash" text not null,
  "status" integer,
  "response" jsonb,
  "created_at" timestamptz not null default now(),
  primary key ("principal", "route", "key")
);
