-- Deleting a checkpoint's files that fails is tried again later, and not for ever: 'abandoned' = out of use, its files stay with the server.
-- 'lost' = its server no longer has it, or it is damaged.
alter table "checkpoints"
  add column "delete_failures" integer not null default 0,
  add column "delete_after" timestamptz(6);
