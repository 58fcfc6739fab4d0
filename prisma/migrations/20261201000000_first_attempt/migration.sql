-- An evaluation that is reopened starts new attempts, which get their tries anew: those before it don't count.
alter table "rollouts"
  add column "first_attempt" integer not null default 1;
