-- Dispatch: groups that are set aside or drawn again, what is learned of instances, changes while a run runs, quotas.
alter table "groups"
  -- stale, zero-variance, not-needed or cancelled: it does not count towards its step's update.
  add column "set_aside" text,
  add column "set_aside_at" timestamptz(6),
  -- The group that was set aside for this one.
  add column "replaces" text,
  -- Stage durations of earlier rollouts of the instance, milliseconds by stage; null = never seen.
  add column "expected_ms" jsonb,
  -- A person holds it: nothing of it is admitted.
  add column "held" boolean not null default false;
create index "groups_instance_idx" on "groups" ("task", "instance_id", "id");
create index "groups_held_idx" on "groups" ("run_id") where "held";

alter table "rollouts"
  -- Policy version that served when the run stage of the present attempt was first claimed.
  add column "first_version" integer,
  add column "held" boolean not null default false;

alter table "runs"
  -- Groups drawn for planned train steps since the run began: the next one is this number's.
  add column "groups_drawn" integer not null default 0,
  -- What was changed of the config's dispatcher while the run runs (DispatcherChange); null = nothing.
  add column "dispatch" jsonb,
  -- Rollouts that may run at once, as adaptive concurrency set it; null = the config's bound.
  add column "run_limit" integer,
  add column "run_limit_since" timestamptz(6),
  add column "draining" boolean not null default false;
update "runs" r set "groups_drawn" = d.n
from (
  select s."run_id", count(*)::int as n from "groups" g join "steps" s on s."id" = g."step_id" where s."purpose" = 'train' and s."source" = 'planned' group by 1
) d where d."run_id" = r."id";

alter table "pools"
  -- Leases that only evaluation rollouts may take.
  add column "evaluation_reserve" integer not null default 0 check ("evaluation_reserve" >= 0);

create table "project_quotas" (
  "project" text not null,
  "resource" text not null references "pools" ("resource"),
  -- Leases that all runs of the project may hold together.
  "quota" integer not null check ("quota" >= 0),
  primary key ("project", "resource")
);

-- Newest reading of the engine (EngineLoad): cache use, running and waiting requests.
alter table "gpu_workers" add column "load" jsonb;

-- When rollouts of a run entered the init stage.
create index "stage_spans_starts_idx" on "stage_spans" ("run_id", "started_at") where "stage" = 'init';

-- A row of a sandbox goes with its rollout. A reference to its run as well would lock the run's row, which every event of the run
-- writes: those writes then met in opposite order.
alter table "sandboxes" drop constraint "sandboxes_run_id_fkey";
