-- Trainers that are launched with a run: one row for each time, the newest is the one that counts.
create table "trainer_jobs" (
  "run_id" text not null references "runs" ("id") on delete cascade,
  "attempt" integer not null,
  -- Its name in the operator's list.
  "trainer" text not null,
  -- Run and attempt: a submission whose answer was lost is the same one when it is sent again.
  "submission_id" text not null unique,
  "state" text not null default 'submitting',
  -- Why it is where it is, in the cluster's words.
  "message" text,
  -- End of what it printed.
  "log_tail" text not null default '',
  "submitted_at" timestamptz(6) not null default now(),
  "started_at" timestamptz(6),
  "ended_at" timestamptz(6),
  primary key ("run_id", "attempt")
);
