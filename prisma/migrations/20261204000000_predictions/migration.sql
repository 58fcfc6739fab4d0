-- What a run's steps were predicted to take, once per run, from what was known before: held against what they took.
create table "predictions" (
  "run_id" text primary key references "runs" ("id") on delete cascade,
  "made_at" timestamptz(6) not null default now(),
  -- StoredPrediction in contracts.
  "prediction" jsonb not null
);
