-- "trainer_seq" as it was when the run's model was last known to be what its serving version says. A higher "trainer_seq" means that
-- requests of an update have gone out since, and that nobody has written yet what became of them.
alter table "runs" add column "settled_seq" bigint not null default 0;
update "runs" set "settled_seq" = "trainer_seq";
