-- The fleet of GPU workers: hosts, their devices, the workers that runs want there, and who has which device.
create table "fleet_hosts" (
  "name" text primary key,
  -- As it was registered; keys and certificates by path alone.
  "spec" jsonb not null,
  "state" text not null default 'unseen',
  "draining" boolean not null default false,
  -- What it said of itself, and when.
  "facts" jsonb,
  "facts_at" timestamptz(6),
  -- Why it does not answer, or shows no GPU.
  "trouble" jsonb,
  "last_seen_at" timestamptz(6),
  "created_at" timestamptz(6) not null default now()
);

create table "fleet_devices" (
  -- UUID of a GPU; of a place on processors, a name of its own.
  "id" text primary key,
  "host" text not null references "fleet_hosts" ("name") on delete cascade,
  "kind" text not null,
  "model" text not null,
  "memory_mb" integer not null,
  "place" integer not null,
  -- The host reported it when it was asked last.
  "present" boolean not null default true
);
create index "fleet_devices_host_idx" on "fleet_devices" ("host");

create table "fleet_workers" (
  "id" text primary key,
  "run_id" text not null references "runs" ("id") on delete cascade,
  "role" text not null,
  "replica" integer not null default 0,
  "device" text not null,
  "devices" integer not null,
  "memory_mb" integer not null,
  "priority" integer not null default 0,
  "wanted" boolean not null default true,
  "state" text not null default 'queued',
  "reason" jsonb,
  -- Where it is, or was last.
  "host" text,
  "container_id" text,
  "url" text,
  "boot_id" text,
  -- Fencing number of its newest placement.
  "claim" bigint not null default 0,
  "lease_until" timestamptz(6),
  "failures" integer not null default 0,
  -- Times it was started again, for whatever reason.
  "restarts" integer not null default 0,
  "not_before" timestamptz(6),
  "queued_at" timestamptz(6) not null default now(),
  "placed_at" timestamptz(6),
  "ready_at" timestamptz(6),
  "ended_at" timestamptz(6),
  unique ("run_id", "role", "replica")
);
create index "fleet_workers_open_idx" on "fleet_workers" ("queued_at") where "state" not in ('stopped', 'refused', 'failed');

-- One row per device that somebody has: its key is what keeps a GPU from being given twice.
create table "gpu_leases" (
  "device_id" text primary key references "fleet_devices" ("id"),
  "worker_id" text not null references "fleet_workers" ("id") on delete cascade,
  "claim" bigint not null,
  "taken_at" timestamptz(6) not null default now()
);
create index "gpu_leases_worker_id_idx" on "gpu_leases" ("worker_id");
