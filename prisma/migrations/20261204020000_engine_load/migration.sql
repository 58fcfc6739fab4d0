-- Why the run's limit is what it is, as its event says; null with no limit.
alter table "runs" add column "run_limit_reason" text;
