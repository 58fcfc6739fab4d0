-- Threads (sub-agents), context changes, notes on turns, and artifacts: what a tool gave back in full.
alter table "transitions"
  add column "thread" text not null default '',
  -- [{kind, message}], see TurnNote in packages/contracts/src/segments.ts; null = none.
  add column "notes" jsonb;

alter table "tool_calls"
  -- UTF-8 bytes of the whole output when "output" is a cut version of it.
  add column "whole_bytes" bigint,
  -- On the last call of a turn whose tools changed the agent's context: flat list start, end … that the next prompt begins with;
  -- empty otherwise.
  add column "next_ranges" integer[] not null default '{}';

alter table "runs"
  -- What preparing the model can't get over, however often it is tried (a setting that is wrong); the planner ends the run with it.
  add column "prepare_refusal" text;

create table "artifacts" (
  "rollout_id" text not null,
  "attempt" integer not null,
  "turn" integer not null,
  "index" integer not null,
  "name" text not null,
  "media_type" text not null,
  -- Of the whole artifact; "content" may hold less, never more.
  "bytes" bigint not null,
  "stored_bytes" integer not null,
  -- gzip
  "content" bytea not null,
  "at" timestamptz not null default now(),
  primary key ("rollout_id", "attempt", "turn", "index", "name")
);
