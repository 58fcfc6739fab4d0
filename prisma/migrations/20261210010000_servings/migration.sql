-- Checkpoints that answer as OpenAI-compatible endpoints. What is served is never removed.
create table "servings" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "version" integer not null,
  "key_hash" text not null unique,
  "started_by" text not null,
  "started_at" timestamptz not null default now(),
  -- To the minute.
  "last_used_at" timestamptz,
  "stopped_at" timestamptz
);
create index "servings_open_idx" on "servings" ("run_id", "version") where "stopped_at" is null;
