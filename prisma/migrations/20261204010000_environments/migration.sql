-- Environments: sandboxes that a run keeps and resets from one rollout to the next.
alter table "sandboxes"
  add column "environment" boolean not null default false,
  -- No rollout's lease stands for it: it takes room of the pool by itself, since then.
  add column "idle_since" timestamptz(6),
  -- What it was opened as: only a rollout that asks for the same can have it.
  add column "fingerprint" text,
  -- Rollouts that worked in it.
  add column "uses" integer not null default 1;
create index "sandboxes_idle_idx" on "sandboxes" ("run_id", "idle_since") where "idle_since" is not null and "state" = 'open';

-- A sandbox's row names the rollout that has it now, or had it last; here are those before.
create table "sandbox_uses" (
  "sandbox_id" text not null references "sandboxes" ("id") on delete cascade,
  -- From 1.
  "place" integer not null,
  "rollout_id" text not null references "rollouts" ("id") on delete cascade,
  "attempt" integer not null,
  primary key ("sandbox_id", "place")
);
create index "sandbox_uses_rollout_id_idx" on "sandbox_uses" ("rollout_id");
