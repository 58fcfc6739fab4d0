-- What a run that is over saved on the fleet's hosts is removed once, where nobody can want it.
alter table "fleet_workers" add column "files_removed" boolean not null default false;
