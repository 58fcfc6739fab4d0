-- Where a run comes from. 'fork': it began with the weights of the parent's version; 'superseded': it holds what the parent
-- had made after that version until the parent was set back to it.
alter table "runs"
  add column "parent_run_id" text references "runs" ("id") on delete set null,
  add column "parent_version" integer,
  add column "parent_relation" text;
create index "runs_parent_idx" on "runs" ("parent_run_id");
update "runs" r set "parent_run_id" = p."id", "parent_relation" = 'fork', "parent_version" = (r."config" #>> '{model,startFrom,version}')::int
from "runs" p where p."id" = r."config" #>> '{model,startFrom,run}';

-- A pinned checkpoint stays whatever the run keeps. 'pruned' = out of use with its files perhaps still there, 'removed' = without.
alter table "checkpoints" add column "pinned" boolean not null default false;
create index "checkpoints_pruned_idx" on "checkpoints" ("run_id") where "state" = 'pruned';
