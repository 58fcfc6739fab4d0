-- A worker may be there to read what others saved: on which host that is, whose it is besides its own run's, and when it was asked for or
-- used last.
alter table "fleet_workers" add column "files_on" text;
alter table "fleet_workers" add column "reads" text[] not null default '{}';
alter table "fleet_workers" add column "used_at" timestamptz(6);
