-- One config launched as several runs that differ in what each variant says.
create table "comparisons" (
  "id" text primary key,
  "name" text not null,
  "created_at" timestamptz(6) not null default now()
);
create index "comparisons_created_at_idx" on "comparisons" ("created_at" desc, "id" desc);

create table "comparison_variants" (
  "comparison_id" text not null references "comparisons" ("id") on delete cascade,
  "position" integer not null,
  "label" text not null,
  -- Merged into the config.
  "change" jsonb not null,
  "run_id" text not null references "runs" ("id") on delete cascade,
  primary key ("comparison_id", "position"),
  unique ("comparison_id", "label")
);
create index "comparison_variants_run_id_idx" on "comparison_variants" ("run_id");
