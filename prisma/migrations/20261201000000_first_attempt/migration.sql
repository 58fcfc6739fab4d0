-- An evaluation that is reopened starts new attempts, which get their tries anew: those before it don't count.
alter table "rollouts"
  add column "first_attempt" integer not null default 1;

-- Why the run stage ended as it did; the verifier's words come beside it.
alter table "rollouts" add column "run_reason" text;
