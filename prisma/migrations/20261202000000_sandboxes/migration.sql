-- Told apart on a Docker host or cluster that several deployments share.
alter table "rolldeck_marker" add column "deployment" text not null default replace(gen_random_uuid()::text, '-', '');

-- One row for each sandbox, written before it is opened: what no open row names is nobody's.
create table "sandboxes" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "attempt" integer not null,
  -- agent or grade
  "purpose" text not null,
  "claim" bigint not null,
  "runtime" text not null,
  -- For people: an image name, or what is built.
  "image" text,
  "network" text not null,
  -- opening → open → closed | lost, with kept between where it is to be looked into
  "state" text not null,
  "in_place" boolean not null default false,
  "reason" text,
  "keep_until" timestamptz(6),
  -- Milliseconds by phase: open, setUp, collect, verify, close.
  "phases" jsonb not null default '{}',
  "created_at" timestamptz(6) not null default now(),
  "opened_at" timestamptz(6),
  "closed_at" timestamptz(6)
);
create index "sandboxes_rollout_id_idx" on "sandboxes" ("rollout_id", "attempt");
create index "sandboxes_run_id_idx" on "sandboxes" ("run_id", "created_at");
create index "sandboxes_live_idx" on "sandboxes" ("state") where "state" in ('opening', 'open', 'kept');

-- What the verifier wants people to look at.
alter table "rollouts" add column "flags" text[] not null default '{}';
